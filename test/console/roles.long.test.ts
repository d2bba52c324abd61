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
}, 60_000);
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

test("a holder creates an application and a key in one form; a plan of others is refused", async () => {
  await using visit = await world.signedIn(ada);
  const { page } = visit;
  await page.getByRole("button", { name: "Create key" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a key" });
  await dialog.getByLabel("Application", { exact: true }).selectOption("A new application...");
  await dialog.getByLabel("Environment").locator("option").first().waitFor({ state: "attached" });
  expect(await dialog.getByLabel("Account").count()).toBe(0);
  await dialog.getByLabel("Name of the application").fill("from the form");
  await dialog.getByLabel("Plan").selectOption("pro");
  await dialog.getByRole("button", { name: "Create key" }).click();
  await dialog.getByText("Your account can issue keys on: standard.").first().waitFor();
  await visit.expectAccessible();
  await dialog.getByLabel("Plan").selectOption("standard");
  await dialog.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("button", { name: "I have stored it" }).click();
  await page.getByRole("row", { name: /from the form/ }).waitFor();
  await visit.expectClean();
});

test("an auditor sees the same pages without actions", async () => {
  await using visit = await world.signedIn(otto);
  const { page } = visit;
  await page.getByRole("table").waitFor();
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
