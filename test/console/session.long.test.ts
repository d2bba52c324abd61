import { expect } from "bun:test";
import {
  type ConsoleWorld,
  operator,
  startConsole,
  testInBrowser as test,
  type Visit,
} from "./support.ts";

/** Ends the session of a browser elsewhere, as its idle time or an operator does. */
async function endSession({ page, url }: Visit): Promise<void> {
  const cookies = await page.context().cookies();
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const headers = { cookie, origin: url };
  const session: unknown = await (await fetch(`${url}/admin/v1/session`, { headers })).json();
  const { csrf_token: csrf } = session as { csrf_token: string };
  const ended = await fetch(`${url}/admin/v1/session`, {
    method: "DELETE",
    headers: { ...headers, "x-csrf-token": csrf },
  });
  expect(ended.status).toBe(200);
}

async function createKey(world: ConsoleWorld): Promise<void> {
  const { id } = await world.admin("POST", "/accounts", { name: "Example" });
  const application = { account_id: id, environment: "local", name: "web" };
  await world.admin("POST", "/applications", application);
}

test("a session that ends keeps what was typed, and the change is sent once after signing in", async () => {
  await using world = await startConsole();
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByLabel("Key's name").fill("typed before it ended");
  await endSession(visit);
  const dialog = page.getByRole("dialog", { name: "Create a key" });
  await dialog.getByRole("button", { name: "Create key" }).click();
  const overlay = page.getByRole("dialog", { name: "Your session has ended" });
  await overlay.waitFor();
  await visit.expectAccessible();
  await page.keyboard.press("Escape");
  expect(await overlay.getByLabel("Email address").inputValue()).toBe(operator.email);
  await overlay.getByLabel("Password").fill("wrong password");
  await page.keyboard.press("Enter");
  await overlay.getByRole("alert").waitFor();
  await overlay.getByLabel("Password").fill(operator.password);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "I have stored it" }).click();
  await page.getByRole("link", { name: "typed before it ended" }).waitFor();
  const { data } = await world.admin("GET", "/keys");
  const names = (data as { name: string }[]).map(({ name }) => name);
  expect(names.filter((name) => name === "typed before it ended")).toHaveLength(1);
  await visit.expectClean();
});

test("a page that only watches is told that its session has ended", async () => {
  await using world = await startConsole();
  const { data } = await world.admin("GET", "/keys");
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.goto(`${visit.url}/keys/${data[0].id}`);
  await page.getByText("open calls").waitFor();
  await endSession(visit);
  const overlay = page.getByRole("dialog", { name: "Your session has ended" });
  await overlay.getByLabel("Password").fill(operator.password);
  await page.keyboard.press("Enter");
  await overlay.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Undo: enable it" }).waitFor();
  await visit.expectClean();
});

test("a tab whose session was replaced in another tab goes on, and signing out ends both", async () => {
  await using world = await startConsole();
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  const other = await page.context().newPage();
  await other.goto(visit.url);
  await other.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
  await visit.signIn(operator);
  await other.getByRole("navigation", { name: "Pages" }).waitFor();
  await visit.expectClean();
});

test("on plain HTTP a key is copied without a clipboard, and the page is compressed", async () => {
  await using world = await startConsole({
    admin: (port) => ({ public_url: `http://console.test:${port}` }),
  });
  await createKey(world);
  await using visit = await world.signedIn(operator, { host: "console.test" });
  const { page } = visit;
  expect(await page.evaluate("window.isSecureContext")).toBe(false);
  await page.getByRole("button", { name: "Create key" }).first().click();
  await page
    .getByLabel("Application", { exact: true })
    .locator("option", { hasText: "web" })
    .waitFor({ state: "attached" });
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  const text = (await page.getByRole("textbox", { name: "API key" }).textContent()) ?? "";
  await page.getByRole("button", { name: "Copy API key" }).click();
  await page.getByText("Copied").first().waitFor();
  await page.getByRole("button", { name: "I have stored it" }).click();
  // Pasted into the search, only what is no secret gets into the address.
  await page.getByRole("searchbox").click();
  await page.keyboard.press("Control+V");
  expect(await page.getByRole("searchbox").inputValue()).toBe(text);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: text.slice(0, 15), level: 1 }).waitFor();
  expect(page.url()).toEndWith(`/keys/${text.slice(0, 15)}`);
  await visit.expectClean();
});
