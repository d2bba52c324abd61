import { afterAll, beforeAll, expect } from "bun:test";
import {
  type AdminAnswer,
  type ConsoleWorld,
  operator,
  startConsole,
  testInBrowser as test,
  type Visit,
} from "./support.ts";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

async function call(key: string): Promise<number> {
  const response = await fetch(`${world.gateway.dataUrl}/v1/embeddings`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "embed-text-v2", input: "text" }),
  });
  await response.text();
  return response.status;
}

/** An application that calls all the time, and can be given another key. */
function startTraffic(first: string) {
  const statuses: number[] = [];
  let key = first;
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      statuses.push(await call(key));
      await Bun.sleep(250);
    }
  })();
  return {
    statuses,
    deploy: (next: string) => (key = next),
    async end(): Promise<readonly number[]> {
      isOver = true;
      await running;
      return statuses;
    },
  };
}

async function newKey(name: string): Promise<{ id: string; text: string }> {
  const { data } = await world.admin("GET", "/applications?name=demo");
  const body = { application_id: data[0].id, plan: "standard", name };
  const answer: AdminAnswer = await world.admin("POST", "/keys", body);
  return { id: answer.key.id as string, text: answer.api_key as string };
}

async function shownSecret({ page }: Visit): Promise<string> {
  const text = (await page.getByRole("textbox", { name: "API key" }).textContent()) ?? "";
  await page.getByRole("button", { name: "I have stored it" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  return text;
}

test("a key is rotated under traffic without a failed call, over a reload of the page", async () => {
  const key = await newKey("rotated");
  const traffic = startTraffic(key.text);
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.getByRole("link", { name: "rotated", exact: true }).click();
  await page.getByRole("heading", { name: "rotated", level: 1 }).waitFor();
  expect(await page.evaluate("document.activeElement.tagName")).toBe("H1");
  await visit.expectAccessible();
  await page.getByRole("link", { name: "Rotate" }).click();
  await page.getByRole("button", { name: "Create the new secret" }).click();
  const next = await shownSecret(visit);
  expect(next).not.toBe(key.text);
  await page.reload();
  await page.getByText("Nobody has used the new secret yet.").waitFor();
  await visit.expectAccessible();
  traffic.deploy(next);
  // Without a reload: by the live stream.
  await page.getByText(/The old secret was used/).waitFor();
  // It was used a moment ago, so the end is not the first choice, and asks.
  await page.getByRole("button", { name: "End the old secret..." }).click();
  await page.getByRole("alertdialog").waitFor();
  await visit.expectAccessible();
  expect(await page.evaluate("document.activeElement.textContent")).toBe("Cancel");
  await page.getByRole("button", { name: "End secret" }).click();
  await page.getByText("The rotation is over").waitFor();
  expect(await call(key.text)).toBe(401);
  expect((await traffic.end()).filter((status) => status !== 200)).toEqual([]);
  expect(traffic.statuses.length).toBeGreaterThan(5);
  await visit.expectClean();
}, 180_000);

test("a key in use is revoked only after its name was typed, and the receipt names the gateways", async () => {
  const key = await newKey("in use");
  expect(await call(key.text)).toBe(200);
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.goto(`${visit.url}/keys/${key.id}`);
  await page.getByRole("button", { name: "Revoke..." }).click();
  const dialog = page.getByRole("alertdialog", { name: "Revoke in use" });
  await dialog.getByLabel("It is in use").fill("something else");
  await dialog.getByRole("button", { name: "Revoke key" }).click();
  await dialog.getByText("This is not its name. Nothing was revoked").waitFor();
  expect(await call(key.text)).toBe(200);
  await visit.expectAccessible();
  await dialog.getByLabel("It is in use").fill("in use");
  await dialog.getByRole("button", { name: "Revoke key" }).click();
  await page.getByText("1 of 1 gateways refuse it.").waitFor();
  expect(await call(key.text)).toBe(401);
  await visit.expectAccessible();
  visit.apiRequests();
  await page.reload();
  await page.getByText(/It was revoked .* for good/).waitFor();
  await page.waitForLoadState("networkidle");
  const asked = visit.apiRequests().filter((each) => !each.includes("/live?"));
  expect(asked).toEqual(["GET /admin/v1/session", `GET /admin/v1/keys/${key.id}`]);
  const text = (await page.locator("main").textContent()) ?? "";
  expect(/refuse it|at the moment|within a second/.exec(text)).toBeNull();
  await visit.expectClean();
});

test("the page shows what a key uses of its limits, to the token", async () => {
  // In its account, because a new key continues the windows of keys that were revoked there.
  const account = await world.admin("POST", "/accounts", { name: "Measured" });
  const owner = { account_id: account.id, environment: "local", name: "measured" };
  const application = await world.admin("POST", "/applications", owner);
  const limits = { requests_per_minute: 20, tokens_per_minute: 10_000 };
  const body = { application_id: application.id, plan: "enterprise", name: "measured", limits };
  const { key, api_key: text } = await world.admin("POST", "/keys", body);
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.goto(`${visit.url}/keys/${key.id}`);
  await page.getByText("0 of 20 (0%)").waitFor();
  for (let count = 0; count < 19; count += 1) expect(await call(String(text))).toBe(200);
  await page.getByText("19 of 20 (95%)").waitFor();
  const { use } = await world.admin("GET", `/keys/${key.id}/live`);
  await page.getByText(`${use.tokens.used} of 10,000`).waitFor();
  expect(use.tokens.used).toBeGreaterThan(0);
  await visit.expectAccessible();
  const streams = visit.apiRequests().filter((request) => request.includes("/live?"));
  expect(streams).toEqual([`GET /admin/v1/live?topics=key&key_id=${key.id}`]);
  await visit.expectClean();
});

test("disabling is one press, and so is its undoing", async () => {
  const key = await newKey("paused");
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.goto(`${visit.url}/keys/${key.id}`);
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Undo: enable it" }).waitFor();
  expect(await call(key.text)).toBe(401);
  await page.getByRole("button", { name: "Undo: enable it" }).click();
  await page.getByRole("button", { name: "Disable" }).waitFor();
  expect(await call(key.text)).toBe(200);
  await visit.expectClean();
});

test("a leaked key: the calls of a day are shown, and every secret ends at once", async () => {
  const key = await newKey("leaked");
  expect(await call(key.text)).toBe(200);
  await using visit = await world.signedIn(operator, { width: 390 });
  const { page } = visit;
  await page.goto(`${visit.url}/keys/${key.id}/rotate`);
  await page.getByRole("button", { name: "End all secrets now..." }).click();
  await page.getByRole("alertdialog").waitFor();
  await visit.expectAccessible();
  await page.getByRole("button", { name: "End all secrets and create one" }).click();
  const next = await shownSecret(visit);
  expect([await call(key.text), await call(next)]).toEqual([401, 200]);
  await visit.expectClean();
});

test("settings are changed; a change by somebody else in between loses neither", async () => {
  const key = await newKey("settings");
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.goto(`${visit.url}/keys/${key.id}`);
  await page.getByRole("button", { name: "Change..." }).click();
  await page.getByLabel("Networks").fill("10.0.0.0/8\nnonsense");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page
    .getByText(/allowed_networks\[1\]/)
    .first()
    .waitFor();
  expect(await page.evaluate("document.activeElement.name")).toBe("allowed_networks");
  await visit.expectAccessible();
  await page.getByLabel("Networks").fill("10.0.0.0/8");
  await page.getByLabel("Note").fill("mine");
  const { revision } = await world.admin("GET", `/keys/${key.id}`);
  await world.admin("PATCH", `/keys/${key.id}`, { revision, note: "theirs", name: "renamed" });
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("dialog", { name: "Somebody else has changed it" }).waitFor();
  await visit.expectAccessible();
  await page.getByRole("button", { name: "Go on with this" }).click();
  expect(await page.getByLabel("Note").inputValue()).toBe("mine");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("heading", { name: "renamed", level: 1 }).waitFor();
  const after = await world.admin("GET", `/keys/${key.id}`);
  expect(after).toMatchObject({ note: "mine", name: "renamed", allowed_networks: ["10.0.0.0/8"] });
  await visit.expectClean();
});

test("applications are created, renamed, disabled and deleted", async () => {
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.getByRole("link", { name: "Applications", exact: true }).click();
  await page.getByRole("button", { name: "Create application" }).click();
  const dialog = page.getByRole("dialog", { name: "Create an application" });
  await dialog
    .getByLabel("Account")
    .locator("option", { hasText: "Demo" })
    .waitFor({ state: "attached" });
  await dialog
    .getByLabel("Environment")
    .locator("option", { hasText: "local" })
    .waitFor({ state: "attached" });
  await dialog.getByLabel("Account").selectOption("Demo");
  await dialog.getByLabel("Application's name").fill("demo");
  await dialog.getByRole("button", { name: "Create application" }).click();
  await dialog.getByText("The name 'demo' is taken.").first().waitFor();
  await dialog.getByLabel("Application's name").fill("reports");
  await dialog.getByRole("button", { name: "Create application" }).click();
  await page.getByRole("button", { name: "Change reports" }).click();
  await page.getByLabel("Name", { exact: true }).fill("weekly reports");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("button", { name: "Change weekly reports" }).click();
  await visit.expectAccessible();
  await page.getByRole("button", { name: "Disable application" }).click();
  await page.getByRole("row", { name: /weekly reports.*disabled/ }).waitFor();
  await page.getByRole("button", { name: "Change weekly reports" }).click();
  await page.getByRole("button", { name: "Delete application" }).click();
  await page.getByRole("rowheader", { name: "weekly reports" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Change demo" }).click();
  await page.getByRole("button", { name: "Delete application" }).click();
  await page.getByText("Revoke the application's keys first.").waitFor();
  await visit.expectClean();
});
