import { afterAll, beforeAll, expect } from "bun:test";
import {
  type AdminAnswer,
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

async function openPlayground(visit: Visit, query = ""): Promise<void> {
  await visit.page.goto(`${visit.url}/playground${query}`);
  await visit.page.getByLabel("Model", { exact: true }).waitFor();
}

async function say({ page }: Visit, text: string): Promise<void> {
  await page.getByLabel("Your message").fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

async function newestCall(): Promise<AdminAnswer> {
  const { data } = await world.admin("GET", "/usage/calls?limit=1");
  return data[0] ?? {};
}

/** The row of the newest call, once it has another id. */
async function callAfter({ id }: AdminAnswer): Promise<AdminAnswer> {
  for (;;) {
    const call = await newestCall();
    if (call.id !== id) return call;
    await Bun.sleep(50);
  }
}

test("a message is answered, its figures are those of the ledger, and the conversation goes on", async () => {
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await openPlayground(visit);
  const before = await newestCall();
  await say(visit, "Hello from the playground!");
  const figures = page.locator(".answer .muted.small");
  await figures.filter({ hasText: "ended: stop" }).waitFor();
  await visit.expectAccessible();
  const row = await callAfter(before);
  expect(await figures.getByRole("link").getAttribute("href")).toBe(`/calls/${row.id}`);
  const said = (await figures.textContent()) ?? "";
  expect(said).toContain(`${row.input_tokens} tokens in`);
  expect(said).toContain(`${row.output_tokens} out`);
  expect(row).toMatchObject({ via: "playground", is_streamed: true, status: 200 });
  await say(visit, "And again.");
  await page.locator(".turns > li").nth(1).getByText("ended: stop").waitFor();
  expect(page.url()).not.toContain("Hello");
  // It is still there after a look at the call.
  await page.getByRole("link", { name: "this call" }).first().click();
  await page.getByRole("heading", { name: `Request ${row.id}` }).waitFor();
  await page.goBack();
  await page.locator(".turns > li").nth(1).getByText("ended: stop").waitFor();
  await visit.expectClean();
});

test("a tool is called, gets its result, and the model answers it", async () => {
  await using visit = await world.signedIn(operator, { width: 390, height: 844, theme: "dark" });
  const { page } = visit;
  await openPlayground(visit);
  await page.getByLabel("Tools").fill(`[{"name": "weather", "parameters": {"type": "object"}}]`);
  await say(visit, "How is the weather?");
  await page.getByLabel("Call of weather").waitFor();
  await visit.expectAccessible();
  await page.getByLabel("Result of weather").fill(`{"sky": "clear"}`);
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("ended: stop").waitFor();
  await visit.expectClean();
});

test("mistakes in what must be JSON are said before anything is sent", async () => {
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await openPlayground(visit);
  await page.getByLabel("Your message").fill("Hello!");
  await page.getByLabel("JSON schema of the answer").fill("{");
  await page.getByText("The answer's schema must be JSON.").waitFor();
  expect(await page.getByRole("button", { name: "Send" }).isDisabled()).toBe(true);
  await page.getByLabel("JSON schema of the answer").fill(`{"type": "object"}`);
  await page.getByLabel("Temperature").fill("7");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("alert").getByText("temperature").waitFor();
  await page.getByRole("link", { name: "this call" }).waitFor();
  // The message can be mended and sent again.
  expect(await page.getByLabel("Your message").inputValue()).toBe("Hello!");
  await page.getByLabel("Temperature").fill("0.5");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("ended: stop").waitFor();
  await visit.expectClean();
});

test("the page takes one request; a refused embedding leads to its call", async () => {
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  visit.apiRequests();
  await openPlayground(visit, "?view=embedding");
  await page.waitForLoadState("networkidle");
  const asked = visit.apiRequests().map((each) => each.replace(/\?.*/, ""));
  expect(new Set(asked.filter((each) => !each.endsWith("/keys")))).toEqual(
    new Set(["GET /admin/v1/session", "GET /admin/v1/choices"]),
  );
  await page.getByLabel("Text").fill("word ".repeat(20_000));
  await page.getByRole("button", { name: "Embed" }).click();
  await page.getByRole("alert").waitFor();
  const call = page.getByRole("link", { name: "this call" });
  expect(await call.getAttribute("href")).toMatch(/^\/calls\/req_[0-9a-f]+$/);
  await visit.expectClean();
});

test("what a model says is text, never a page", async () => {
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await openPlayground(visit);
  for (const canary of canaries) {
    await say(visit, canary);
    await page.getByRole("button", { name: "Start anew" }).waitFor();
    await page.locator(".said").last().getByText(canary, { exact: true }).waitFor();
  }
  await visit.expectClean();
});

test("a closed tab ends the call", async () => {
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await openPlayground(visit);
  const before = await newestCall();
  await say(visit, "Please write 4000 words, as slowly as you can. ".repeat(40));
  await page.locator(".answer").waitFor();
  await page.close();
  const row = await callAfter(before);
  expect(row).toMatchObject({ via: "playground", outcome: "abandoned", status: 499 });
});

test("a text becomes a vector, and the example of it works as it is shown", async () => {
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await openPlayground(visit, "?view=embedding");
  await page.getByLabel("Text").fill("It's a gate, isn't it?");
  await page.getByRole("button", { name: "Embed" }).click();
  await page.getByText("Dimensions").waitFor();
  await visit.expectAccessible();
  await page.getByText("As code").click();
  const shown = page.getByLabel("Example in curl");
  await shown.getByText(world.gateway.dataUrl).waitFor();
  const child = Bun.spawn(["sh", "-c", (await shown.textContent()) ?? ""], {
    env: { PATH: process.env["PATH"] ?? "", SLUICE_KEY: world.demoKey },
    stderr: "ignore",
  });
  const answer = await new Response(child.stdout).json();
  expect(answer).toMatchObject({ object: "list", model: "embed-text-v2" });
  await visit.expectClean();
});

test("models are listed, and each says how it is called", async () => {
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.goto(`${visit.url}/models`);
  await page.getByRole("link", { name: "alpha-haiku-3.5" }).click();
  await page.getByLabel("Example in curl").getByText("alpha-haiku-3.5").waitFor();
  await visit.expectAccessible();
  await page.getByRole("link", { name: "Try it" }).click();
  await page.getByLabel("Model", { exact: true }).waitFor();
  expect(await page.getByLabel("Model", { exact: true }).inputValue()).toBe("alpha-haiku-3.5");
  await visit.expectClean();
});
