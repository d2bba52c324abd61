import { afterAll, beforeAll, expect } from "bun:test";
import {
  canaries,
  type ConsoleWorld,
  operator,
  startConsole,
  testInBrowser as test,
  type Visit,
} from "./support.ts";

const { password } = operator;
const ada = { email: "ada@example.com", password };
const otto = { email: "otto@example.com", password };
const paul = { email: "paul@example.com", password };

let world: ConsoleWorld;
/** An account with a user, an application and a key. */
interface Customer {
  readonly id: string;
  readonly name: string;
  readonly user: string;
  readonly key: string;
}
let alpha: Customer;
let beta: Customer;
beforeAll(async () => {
  world = await startConsole();
  alpha = await customer("Alpha Ltd", ada.email);
  beta = await customer("Beta Ltd", "betty@example.com");
  await world.admin("POST", "/users", { ...otto, role: "auditor" });
  await world.admin("POST", "/users", { ...paul, role: "auditor", account_id: alpha.id });
  for (const name of canaries) {
    await world.admin("POST", "/accounts", { name, note: name });
    await world.admin("PATCH", `/users/${alpha.user}`, {
      revision: (await world.admin("GET", `/users/${alpha.user}`)).revision,
      name,
    });
  }
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

async function customer(name: string, email: string): Promise<Customer> {
  const { id } = await world.admin("POST", "/accounts", { name, plans: ["standard"] });
  const own = { account_id: id, environment: "local", name: `app of ${name}` };
  const application = await world.admin("POST", "/applications", own);
  const wanted = { application_id: application.id, plan: "standard", name: `key of ${name}` };
  const { key } = await world.admin("POST", "/keys", wanted);
  const user = await world.admin("POST", "/users", {
    email,
    password,
    role: "account_holder",
    account_id: id,
  });
  return { id, name, user: user.id, key: key.id };
}

const paths = [
  "/accounts",
  "/users",
  "/audit",
  "/configuration",
  "/access",
  "/access?view=sessions",
  "/access?view=password",
];

async function open({ page, url }: Visit, path: string): Promise<void> {
  await page.goto(url + path);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.waitForLoadState("networkidle");
}

test("the pages have no violations in both themes and widths, and names that would run are text", async () => {
  for (const theme of ["light", "dark"] as const) {
    for (const width of [390, 1440]) {
      await using visit = await world.signedIn(operator, { theme, width });
      for (const path of [...paths, `/accounts/${alpha.id}`]) {
        await open(visit, path);
        await visit.expectAccessible();
        if (width === 390) await visit.page.setViewportSize({ width: 320, height: 900 });
        const overflow = await visit.page.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        expect([path, width, overflow]).toEqual([path, width, 0]);
        await visit.page.setViewportSize({ width, height: 900 });
      }
      await open(visit, "/accounts");
      for (const name of canaries) {
        await visit.page.getByRole("rowheader", { name, exact: true }).waitFor();
      }
      await visit.expectClean();
    }
  }
}, 180_000);

test("each page asks once, beside the shell", async () => {
  await using visit = await world.signedIn();
  await open(visit, "/access");
  for (const path of [...paths, `/accounts/${alpha.id}`]) {
    visit.apiRequests();
    await open(visit, path);
    const requests = visit.apiRequests().filter((each) => !each.endsWith("/session"));
    expect([path, requests.length <= 1, requests]).toEqual([path, true, requests]);
  }
});

test("an auditor sees the same pages without actions", async () => {
  await using visit = await world.signedIn(otto);
  for (const path of [
    "/accounts",
    `/accounts/${alpha.id}`,
    "/users",
    "/audit",
    "/configuration",
    "/gateways",
  ]) {
    await open(visit, path);
    const names = await visit.page.locator("main button").allTextContents();
    const others = names.filter((name) => !/^(Copy|Find|Show .*)$/.test(name));
    expect([path, others]).toEqual([path, []]);
  }
  await visit.expectClean();
});

test("who is bound to an account sees nothing of another one by address or filter", async () => {
  const pages = [
    `/accounts/${beta.id}`,
    "/accounts",
    `/accounts?account=${beta.id}`,
    `/users?account=${beta.id}`,
    "/users",
    "/audit",
    `/audit?account=${beta.id}`,
    `/audit?subject=${beta.id}`,
    `/audit?subject=${beta.key}`,
    `/audit?actor=${beta.user}`,
    "/access",
    "/access?view=sessions",
    "/configuration",
  ];
  for (const user of [ada, paul]) {
    await using visit = await world.signedIn(user);
    for (const path of pages) {
      await open(visit, path);
      const text = (await visit.page.locator("main").textContent()) ?? "";
      expect([path, /Beta|betty/.exec(text)]).toEqual([path, null]);
    }
    const refused: string[] = [];
    for (const id of [beta.id, "acct_0000000000000000"]) {
      await open(visit, `/accounts/${id}`);
      const text = await visit.page.getByRole("alert").textContent();
      refused.push(text?.replace(/req_\w+/, "") ?? "");
    }
    expect(new Set(refused).size).toBe(1);
    await open(visit, "/audit");
    await visit.page.getByRole("link", { name: "key of Alpha Ltd" }).waitFor();
    await visit.expectClean();
  }
});

test("settings that somebody else has changed meanwhile lose no typed text", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, `/accounts/${alpha.id}`);
  await page.getByRole("button", { name: "Change..." }).click();
  await page.getByLabel("Note").fill("typed by me");
  const { revision } = await world.admin("GET", `/accounts/${alpha.id}`);
  await world.admin("PATCH", `/accounts/${alpha.id}`, { revision, max_keys: 7, note: "theirs" });
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("heading", { name: "Somebody else has changed it" }).waitFor();
  await visit.expectAccessible();
  await page.getByLabel("Note").selectOption("mine");
  await page.getByRole("button", { name: "Go on with this" }).click();
  expect(await page.getByLabel("Note").inputValue()).toBe("typed by me");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  const { note, max_keys: keys } = await world.admin("GET", `/accounts/${alpha.id}`);
  expect([note, keys]).toEqual(["typed by me", 7]);

  await open(visit, "/users");
  await page.getByRole("button", { name: `Change ${otto.email}` }).click();
  await page.getByLabel("Name", { exact: true }).fill("Otto of me");
  const { data } = await world.admin("GET", `/users?email=${otto.email}`);
  await world.admin("PATCH", `/users/${data[0].id}`, { revision: data[0].revision, name: "Other" });
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("heading", { name: "Somebody else has changed it" }).waitFor();
  await page.getByLabel("Name", { exact: true }).selectOption("mine");
  await page.getByRole("button", { name: "Go on with this" }).click();
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("Otto of me").waitFor();
  await visit.expectClean();
});

test("the audit says who raised a limit, and the address holds the filters", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, `/accounts/${alpha.id}`);
  await page.getByRole("button", { name: "Change..." }).click();
  await page.getByLabel("Requests per minute").fill("1200");
  await page.getByLabel("Tokens per minute").fill("90000");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("1,200 requests").waitFor();
  await page.getByRole("link", { name: "Who changed it" }).click();
  const row = page.getByRole("row", { name: /account\.update.*requests per minute: none → 1,200/ });
  await row.getByRole("link", { name: operator.email }).waitFor();
  const actions = page.getByLabel("Action").locator("option");
  expect(await actions.allTextContents()).toContain("playground.call");
  await row.getByRole("link", { name: "account.update" }).click();
  await page.waitForURL(/action=account\.update/);
  await page.getByRole("link", { name: operator.email }).first().click();
  await page.waitForURL(/actor=user_/);
  await page.reload();
  await row.waitFor();
  expect(await page.getByRole("link", { name: "account.create" }).count()).toBe(0);
  await page.getByPlaceholder("Id, such as").fill(beta.id);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("Nothing in this range fits these filters.").waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await row.waitFor();
  await visit.expectClean();
});

test("an account is created, disabled, enabled, and erased after its name was typed", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, "/accounts");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Gone Ltd");
  await page.getByRole("dialog").getByText("standard", { exact: true }).click();
  await visit.expectAccessible();
  await page.getByRole("dialog").getByRole("button", { name: "Create account" }).click();
  await page.getByRole("heading", { name: "Gone Ltd", level: 1 }).waitFor();
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  expect(await world.admin("GET", `/accounts/${id}`)).toMatchObject({ plans: ["standard"] });
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByText("Calls of all its keys are refused since").waitFor();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByText("Calls of all its keys").waitFor({ state: "detached" });
  const own = { account_id: id, environment: "local", name: "last" };
  await world.admin("POST", "/applications", own);
  await page.getByRole("button", { name: "Erase..." }).click();
  const dialog = page.getByRole("alertdialog");
  await dialog.getByText("Applications: 1").waitFor();
  await visit.expectAccessible();
  await dialog.getByLabel(/Type its name/).fill("Gone");
  await dialog.getByRole("button", { name: "Erase account" }).click();
  await dialog.getByText("repeat the account's name").first().waitFor();
  await dialog.getByLabel(/Type its name/).fill("Gone Ltd");
  await dialog.getByRole("button", { name: "Erase account" }).click();
  await page.getByText("applications: 1").waitFor();
  await page.getByRole("link", { name: "Show the other accounts" }).click();
  await page.getByRole("link", { name: "Alpha Ltd" }).waitFor();
  expect(await page.getByText("Gone Ltd").count()).toBe(0);
  await visit.expectClean();
});

test("a user is disabled, enabled and deleted, and the last operator is not", async () => {
  await world.admin("POST", "/users", { email: "carl@example.com", role: "auditor" });
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, "/users");
  const row = page.getByRole("row", { name: /carl@example.com/ });
  for (const [button, state] of [
    ["Disable user", "disabled"],
    ["Enable user", "never signed in"],
  ] as const) {
    await row.getByRole("button", { name: /^Change/ }).click();
    await visit.expectAccessible();
    await page.getByRole("button", { name: button }).click();
    await row.getByText(state).waitFor();
  }
  await row.getByRole("button", { name: /^Change/ }).click();
  await page.getByRole("button", { name: "Delete user..." }).click();
  await visit.expectAccessible();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete user" }).click();
  await row.waitFor({ state: "detached" });
  await visit.expectClean();
});

test("a token is shown once, works until it is revoked; sessions end; a new password signs in", async () => {
  await using visit = await world.signedIn(ada);
  await using elsewhere = await world.signedIn(ada, { width: 390 });
  const { page } = visit;
  await open(visit, "/access");
  await page.getByRole("button", { name: "Create token" }).click();
  await page.getByLabel("Name").fill("nightly report");
  await visit.expectAccessible();
  await page.getByRole("dialog").getByRole("button", { name: "Create token" }).click();
  const token = (await page.getByRole("textbox", { name: "token" }).textContent()) ?? "";
  await page.getByRole("button", { name: "I have stored it" }).click();
  const ask = async (): Promise<number> => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${visit.url}/admin/v1/keys`, { headers });
    await response.text();
    return response.status;
  };
  expect(await ask()).toBe(200);
  expect(await page.content()).not.toContain(token);
  await page.getByRole("button", { name: "Revoke nightly report" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Revoke token" }).click();
  await page.getByText("revoked").waitFor();
  expect(await ask()).toBe(401);

  await page.getByRole("link", { name: "Sessions" }).click();
  await page.getByText("this browser").waitFor();
  await page.getByRole("button", { name: "End all others" }).click();
  await page.getByText("You are signed in nowhere else.").waitFor();
  await elsewhere.page.reload();
  await elsewhere.page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();

  await page.getByRole("link", { name: "Password" }).click();
  await page.getByLabel("Current password").fill("wrong");
  await page.getByLabel("New password").fill("sand in the hourglass");
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByText("The current password is wrong.").first().waitFor();
  await visit.expectAccessible();
  await page.getByLabel("Current password").fill(ada.password);
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByText("Your password is changed.").waitFor();
  await elsewhere.signIn({ ...ada, password: "sand in the hourglass" });
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
  await visit.expectClean();
});

test("the configuration is found by words, with where it comes from, and without secrets", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, "/configuration");
  await page.getByPlaceholder("Find a setting").fill("listen.admin");
  const row = page.getByRole("row", { name: /^listen\.admin/ });
  await row.getByText("command line").waitFor();
  await row.getByText(new URL(visit.url).host).waitFor();
  expect(page.url()).toContain("find=listen.admin");
  await page.reload();
  await row.waitFor();
  await page.getByPlaceholder("Find a setting").fill("access_key");
  await page.getByText("[redacted]").first().waitFor();
  const { data } = await world.admin("GET", "/configuration");
  await page.getByPlaceholder("Find a setting").fill("");
  await page.getByRole("button", { name: `Show all ${data.length}` }).click();
  const rows = await page.getByRole("table", { name: "Settings" }).getByRole("row").count();
  expect(rows - 1).toBe(Number(data.length));
  await visit.expectClean();
});
