import { afterAll, beforeAll, expect } from "bun:test";
import { type ConsoleWorld, operator, startConsole, testInBrowser as test } from "./support.ts";

const { password } = operator;
const ada = { email: "ada@example.com", password };
const otto = { email: "otto@example.com", password };

let world: ConsoleWorld;
/** Of another account. */
let foreign: { id: string; accountId: string };
beforeAll(async () => {
  world = await startConsole();
  const ids: Record<string, string> = {};
  for (const name of ["Alpha Ltd", "Beta Ltd"]) {
    const account = await world.admin("POST", "/accounts", { name, plans: ["standard"] });
    const owner = { account_id: account.id, environment: "local", name: `app of ${name}` };
    const application = await world.admin("POST", "/applications", owner);
    const wanted = { application_id: application.id, plan: "standard", name: `key of ${name}` };
    const { key } = await world.admin("POST", "/keys", wanted);
    ids[name] = account.id;
    if (name === "Beta Ltd") foreign = { id: key.id, accountId: account.id };
  }
  const own = { account_id: ids["Alpha Ltd"] };
  await world.admin("POST", "/users", { ...ada, ...own, role: "account_holder" });
  await world.admin("POST", "/users", { ...otto, ...own, role: "auditor" });
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

test("an account holder has the actions of its own keys, and sees nothing of another account", async () => {
  await using visit = await world.signedIn(ada);
  const { page } = visit;
  const links = [
    "/keys",
    `/keys?account=${foreign.accountId}`,
    "/keys?view=applications",
    `/keys?view=applications&account=${foreign.accountId}`,
    `/keys/${foreign.id}`,
    `/keys/${foreign.id}/rotate`,
    "/keys/key_0000000000000000",
  ];
  const notes: string[] = [];
  for (const link of links) {
    await page.goto(visit.url + link);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.waitForLoadState("networkidle");
    expect(await page.content()).not.toContain("Beta");
    if (/keys\/key/.test(link)) {
      notes.push((await page.getByRole("alert").textContent())?.replace(/req_\w+/, "") ?? "");
    }
  }
  // A key of another account looks like one that does not exist.
  expect(new Set(notes).size).toBe(1);
  await page.goto(`${visit.url}/keys`);
  await page.getByRole("columnheader", { name: "Plan" }).waitFor();
  expect(await page.getByRole("columnheader", { name: "Account" }).count()).toBe(0);
  await page.getByRole("link", { name: "key of Alpha Ltd" }).click();
  await page.getByRole("link", { name: "Rotate" }).waitFor();
  await page.getByRole("button", { name: "Change..." }).click();
  await page.getByLabel("Networks").waitFor();
  expect(await page.getByLabel("Provisioned units").count()).toBe(0);
  await visit.expectClean();
});

test("a holder creates an application and a key in one form, on a plan of its account", async () => {
  await using visit = await world.signedIn(ada);
  const { page } = visit;
  await page.getByRole("button", { name: "Create key" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a key" });
  await dialog.getByLabel("Application", { exact: true }).selectOption("A new application...");
  await dialog.getByLabel("Environment").locator("option").first().waitFor({ state: "attached" });
  expect(await dialog.getByLabel("Account").count()).toBe(0);
  await dialog.getByLabel("Application's name").fill("from the form");
  const plans = dialog.getByLabel("Plan").locator("option");
  expect(await plans.allTextContents()).toEqual(["standard"]);
  await visit.expectAccessible();
  await dialog.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("button", { name: "I have stored it" }).click();
  await page.getByRole("row", { name: /from the form/ }).waitFor();
  await visit.expectClean();
});

test("a holder whose account has no plan is told who can allow one, and no application is made", async () => {
  const account = await world.admin("POST", "/accounts", { name: "Gamma Ltd" });
  const grete = { email: "grete@example.com", password };
  const user = { ...grete, role: "account_holder", account_id: account.id };
  await world.admin("POST", "/users", user);
  await using visit = await world.signedIn(grete);
  const { page } = visit;
  await page.getByRole("button", { name: "Create key" }).first().click();
  await page.getByText("An operator can allow a plan").waitFor();
  expect(await page.getByRole("dialog").getByLabel("Plan").count()).toBe(0);
  await visit.expectAccessible();
  await visit.expectClean();
});

test("a refused key leaves no application behind, and an operator is warned of a plan of others", async () => {
  const wanted = { name: "Full Ltd", plans: ["standard"] };
  const account = await world.admin("POST", "/accounts", wanted);
  await using visit = await world.signedIn(operator, { path: `/keys?account=${account.id}` });
  const { page } = visit;
  await page.getByRole("button", { name: "Create key" }).first().click();
  const dialog = page.getByRole("dialog", { name: "Create a key" });
  await dialog.getByLabel("Application's name").fill("never");
  await dialog.getByLabel("Plan").selectOption("pro");
  await dialog.getByText("Plan pro is not among the plans of account Full Ltd").waitFor();
  await visit.expectAccessible();
  await dialog.getByLabel("Key's name").fill("long ".repeat(100));
  await dialog.getByRole("button", { name: "Create key" }).click();
  await dialog.getByRole("alert").waitFor();
  await page.waitForLoadState("networkidle");
  const { data } = await world.admin("GET", `/applications?account_id=${account.id}`);
  expect(data).toEqual([]);
  await visit.expectClean();
});

test("the navigation begins without filters, and a filter without a field can be removed", async () => {
  const filters = `account=${foreign.accountId}&range=7d`;
  await using visit = await world.signedIn(operator, { path: `/keys?${filters}` });
  const { page } = visit;
  await page
    .getByRole("navigation", { name: "Pages" })
    .getByRole("link", { name: "Users" })
    .click();
  await page.getByRole("heading", { name: "Users", level: 1 }).waitFor();
  expect(page.url()).toBe(`${visit.url}/users`);
  await page.goto(`${visit.url}/keys?view=applications&${filters}`);
  await page.getByRole("button", { name: "Remove the filter Account: Beta Ltd" }).click();
  await page.getByRole("rowheader", { name: "app of Alpha Ltd" }).waitFor();
  await visit.expectClean();
});

test("an auditor sees the same pages without actions", async () => {
  await using visit = await world.signedIn(otto);
  const { page } = visit;
  await page.getByRole("table").waitFor();
  const pages = await page.locator("a.nav-link").allTextContents();
  // What it would be refused is not offered to who is bound to an account.
  expect(
    pages.filter((name) => /Configuration|Targets|Gateways|Prices|Playground/.test(name)),
  ).toEqual([]);
  expect(pages).toContain("Budgets");
  expect(await page.getByRole("button", { name: "Create key" }).count()).toBe(0);
  await page.getByRole("link", { name: "key of Alpha Ltd" }).click();
  await page.getByRole("heading", { name: "Settings" }).waitFor();
  for (const name of ["Disable", "Revoke...", "Change..."]) {
    expect([name, await page.getByRole("button", { name }).count()]).toEqual([name, 0]);
  }
  expect(await page.getByRole("link", { name: "Rotate" }).count()).toBe(0);
  await page.goto(`${page.url()}/rotate`);
  await page.getByRole("heading", { name: "There is no such page" }).waitFor();
  await page
    .getByRole("link", { name: "Applications", exact: true })
    .waitFor({ state: "detached" });
  await visit.expectClean();
});
