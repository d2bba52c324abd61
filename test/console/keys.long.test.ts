import { afterAll, beforeAll, expect } from "bun:test";
import {
  canaries,
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
  const response = await fetch(`${world.gateway.dataUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "alpha-sonnet-4",
      messages: [{ role: "user", content: "Hello!" }],
    }),
  });
  await response.text();
  return response.status;
}

/** The example for curl, with the key in the variable that it names. */
async function runsAsShown({ page }: Visit, key: string): Promise<void> {
  const shown = page.getByLabel("Example in curl");
  await shown.getByText(world.gateway.dataUrl).waitFor();
  const command = (await shown.textContent()) ?? "";
  const child = Bun.spawn(["sh", "-c", command], {
    env: { PATH: process.env["PATH"] ?? "", SLUICE_KEY: key },
    stderr: "ignore",
  });
  expect(await new Response(child.stdout).text()).toEndWith("data: [DONE]\n\n");
}

async function openDialog({ page }: Visit): Promise<void> {
  await page.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("dialog", { name: "Create a key" }).waitFor();
  await page
    .getByRole("dialog")
    .getByLabel("Application", { exact: true })
    .locator("option", { hasText: "demo" })
    .waitFor({ state: "attached" });
}

test("a key is created, shown once, copied, and works", async () => {
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await openDialog(visit);
  await visit.expectAccessible();
  await page.getByLabel("Name").fill("night batch");
  await page.getByLabel("Plan").selectOption("standard");
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  const secret = page.getByRole("textbox", { name: "API key" });
  const text = (await secret.textContent()) ?? "";
  expect(text).toStartWith("sk-slc_");
  await visit.expectAccessible();
  await page.getByRole("button", { name: "Copy API key" }).click();
  await page.getByText("Copied").first().waitFor();
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe(text);
  await runsAsShown(visit, text);
  // Neither Esc nor "back" loses it.
  await page.keyboard.press("Escape");
  await page.getByText("Have you stored it?").waitFor();
  await page.goBack();
  expect(await secret.textContent()).toBe(text);
  await page.getByRole("button", { name: "I have stored it" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("rowheader", { name: "night batch" }).waitFor();
  expect(await page.content()).not.toContain(text);
  expect(await call(text)).toBe(200);
  await visit.expectClean();
});

test("names that would run are text", async () => {
  const { data } = await world.admin("GET", "/applications");
  for (const name of canaries) {
    await world.admin("POST", "/keys", { application_id: data[0].id, plan: "standard", name });
  }
  for (const width of [390, 1440]) {
    await using visit = await world.signedIn(operator, { width });
    for (const name of canaries) {
      await visit.page.getByRole("rowheader", { name, exact: true }).first().waitFor();
    }
    await visit.expectAccessible();
    await visit.expectClean();
  }
});

test("the list takes one request beside those of the shell", async () => {
  await using visit = await world.signedIn();
  await visit.page.getByRole("table").waitFor();
  visit.apiRequests();
  await visit.page.getByLabel("Status").selectOption("active");
  await visit.page.waitForURL(/status=active/);
  await visit.page.waitForLoadState("networkidle");
  expect(visit.apiRequests()).toEqual(["GET /admin/v1/keys?status=active"]);
});
