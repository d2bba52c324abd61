import { afterAll, beforeAll, expect } from "bun:test";
import type { BrowserContext, Locator, Page } from "playwright-core";
import { testPepper } from "../support/gateway.ts";
import { describeWithPostgres } from "../support/postgres-databases.ts";
import { until } from "../support/until.ts";
import { describeWithValkey, startValkey } from "../support/valkey-server.ts";
import {
  canaries,
  type ConsoleWorld,
  createOwner,
  operator,
  type Owner,
  startConsole,
  testInBrowser as test,
  type Visit,
} from "./support.ts";

/** What needs whom now: the first page and those of targets, pools and gateways, as they change. */

const holder = { email: "bea@example.com", password: "another horse battery" };
const other = { email: "ada@example.com", password: "a third horse battery" };
/** With the icon of the badge. */
const isLive = /^●live$/;
const canary = canaries[0] ?? "";
const ill = { kind: "chat", context_window: 200_000, max_output_tokens: 4_000 };
const sections = {
  routing: { attempts: 1, out: { failures: 3, first: "3s", longest: "3s" } },
  pools: { main: { tokens_per_minute: 1_000_000, max_in_flight: 7 } },
};
const models = {
  ill: { ...ill, targets: [{ upstream: "simulator", model: "simulated-weak", pool: "main" }] },
};

let world: ConsoleWorld;
let mine: Owner;
let theirs: Owner;
beforeAll(async () => {
  world = await startConsole({ models, sections });
  mine = await newOwner(canary, "my shop", holder);
  theirs = await newOwner("Theirs", "their application", other);
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

function newOwner(
  name: string,
  application: string,
  user: typeof operator,
  requestsPerMinute = 10,
): Promise<Owner> {
  return createOwner(world, { name, application, user, requestsPerMinute });
}

async function call(
  key: string,
  model = "alpha-sonnet-4",
  signal: AbortSignal | null = null,
): Promise<number> {
  const response = await fetch(`${world.gateway.dataUrl}/v1/chat/completions`, {
    method: "POST",
    signal,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello!" }] }),
  });
  await response.text();
  return response.status;
}

/** The streams of live numbers that a browser has open. */
function openStreams(context: BrowserContext): () => number {
  const open = new Set<unknown>();
  const isLive = (address: string): boolean => new URL(address).pathname === "/admin/v1/live";
  context.on("request", (request) => isLive(request.url()) && open.add(request));
  context.on("requestfinished", (request) => open.delete(request));
  context.on("requestfailed", (request) => open.delete(request));
  return () => open.size;
}

/** Pages by their paths: what they read, and what they show once they are complete. */
const pages: Readonly<Record<string, { read: string; complete: (page: Page) => Locator }>> = {
  "/": { read: "overview", complete: (page) => page.getByRole("img", { name: /^Calls an hour/ }) },
  "/targets": { read: "targets", complete: (page) => page.getByRole("table", { name: "Gates" }) },
  "/pools": { read: "pools", complete: (page) => page.getByRole("rowheader", { name: /main/ }) },
  "/gateways": {
    read: "processes",
    complete: (page) => page.getByText("The one process is ready."),
  },
};

test("an installation without calls teaches the first, which works as it is shown", async () => {
  await using visit = await world.signedIn(operator, { path: "/" });
  const { page } = visit;
  await page.getByText("Nothing needs you. Checked at").waitFor();
  await page.getByRole("heading", { name: "No calls in the last 24 hours" }).waitFor();
  const shown = page.getByLabel("Example in curl");
  await shown.getByText(world.gateway.dataUrl).waitFor();
  await visit.expectAccessible();
  await visit.expectClean();
  await shoot(visit, "first-call");
  const child = Bun.spawn(["sh", "-c", (await shown.textContent()) ?? ""], {
    env: { PATH: process.env["PATH"] ?? "", SLUICE_KEY: mine.key },
    stderr: "ignore",
  });
  expect(await new Response(child.stdout).text()).toEndWith("data: [DONE]\n\n");
});

async function shoot({ page }: Visit, name: string): Promise<void> {
  const folder = process.env["SLUICE_SHOTS"];
  if (folder === undefined) return;
  await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}

test("an ill target appears on both pages and goes again by itself, and two tabs have one stream", async () => {
  await using visit = await world.signedIn(operator, { path: "/" });
  const { page } = visit;
  const context = page.context();
  const streams = openStreams(context);
  await page.getByText(isLive).waitFor();
  const targets = await context.newPage();
  await targets.goto(`${visit.url}/targets`);
  const row = targets.getByRole("row", { name: /simulator\/simulated-weak/ });
  await row.getByText("in service").waitFor();
  await targets.getByText(isLive).waitFor();
  await page.bringToFront();
  visit.apiRequests();
  world.simulator?.setFaultPlan([{ mode: "error-500", times: Number.POSITIVE_INFINITY }]);
  // Of three keys, because none alone takes a target out for others.
  const third = await newOwner("Third", "third", { ...other, email: "third@example.com" }, 100_000);
  for (const { key } of [mine, theirs, third]) expect(await call(key, "ill")).toBeGreaterThan(499);
  await page.getByRole("link", { name: "simulator/simulated-weak" }).waitFor();
  await row.getByText("✕failing").waitFor();
  await row.getByText(/for \d+ s more|being tried/).waitFor();
  await row.getByText("tried all the same, as nothing else serves ill").waitFor();
  await row.getByText(/3 unavailable, last unavailable at /).waitFor();
  expect(streams()).toBe(1);
  await shoot(visit, "home-ill");
  world.simulator?.setFaultPlan([]);
  // The first answer after its time ends it.
  await until(async () => {
    await call(third.key, "ill");
    return row.getByText("in service").isVisible();
  });
  await page.getByRole("link", { name: "simulator/simulated-weak" }).waitFor({ state: "detached" });
  const asked = visit.apiRequests().filter((request) => !request.includes("/live"));
  expect(new Set(asked)).toEqual(new Set(["GET /admin/v1/overview"]));
  // The other tab reads on when the one that read is gone.
  await page.close();
  await until(() => streams() === 1);
  world.simulator?.setFaultPlan([{ mode: "slow-first-byte", argument: 60_000 }]);
  const leaving = new AbortController();
  const slow = call(third.key, "ill", leaving.signal).catch(() => 0);
  await row.getByRole("cell", { name: "1", exact: true }).waitFor();
  leaving.abort();
  await row.getByRole("cell", { name: "0", exact: true }).waitFor();
  expect(await slow).toBe(0);
  await targets.close();
}, 180_000);

test("a key near its limit appears to both who may see it, with whose limit it is, and to nobody else", async () => {
  await using visit = await world.signedIn(operator, { path: "/" });
  await using own = await world.signedIn(holder, { path: "/" });
  await using foreign = await world.signedIn(other, { path: "/" });
  for (const { page } of [visit, own, foreign]) {
    await page.getByText(isLive).waitFor();
  }
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429) statuses.push(await call(mine.key));
  for (const { page } of [visit, own]) {
    await page.getByText("Key near its limit").first().waitFor();
    const link = page.getByRole("table").getByRole("link", { name: "my shop", exact: true });
    await link.first().waitFor();
    await page.getByText("Set by the key itself").first().waitFor();
    expect(await link.first().getAttribute("href")).toStartWith(`/keys/${mine.keyId}`);
  }
  await own.expectAccessible();
  await shoot(own, "home-holder");
  await call(theirs.key);
  await foreign.page.getByRole("link", { name: "their application" }).waitFor();
  const stream = (topics: string, more = ""): Promise<unknown> =>
    foreign.page.evaluate(
      `fetch("/admin/v1/live?topics=${topics}${more}").then(async (response) => {
         if (!response.ok) return response.status;
         const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
         let text = "";
         while (!text.includes("data: ")) text += (await reader.read()).value;
         await reader.cancel();
         return text;
       })`,
    );
  const seen = String(await stream("keys"));
  expect(seen).toContain(theirs.keyId);
  for (const text of [seen, await foreign.page.content()]) {
    const found = [mine.keyId, mine.accountId, "my shop"].filter((each) => text.includes(each));
    expect(found).toEqual([]);
  }
  for (const topic of ["targets", "gates", "processes"]) expect(await stream(topic)).toBe(403);
  expect(await stream("key", `&key_id=${theirs.keyId},${mine.keyId}`)).toBe(404);
  const links = foreign.page.getByRole("navigation", { name: "Pages" });
  expect(await links.getByText("Targets").count()).toBe(0);
  for (const each of [visit, own]) await each.expectClean();
}, 180_000);

test("rows do not move under the pointer", async () => {
  await using visit = await world.signedIn(operator, { path: "/" });
  const { page } = visit;
  await page.getByText(isLive).waitFor();
  await page.getByRole("table", { name: "What needs you now" }).hover();
  const fourth = await newOwner("Fourth", "fourth", { ...other, email: "fourth@example.com" });
  while ((await call(fourth.key)) !== 429);
  await page.getByRole("button", { name: "Show what has changed" }).waitFor();
  const row = page.getByRole("table").getByRole("link", { name: "fourth", exact: true });
  expect(await row.count()).toBe(0);
  await page.getByRole("button", { name: "Show what has changed" }).click();
  await row.waitFor();
  await visit.expectClean();
}, 180_000);

test("what a pool has left is shown to an operator, and to a holder its own share alone", async () => {
  const owner = await newOwner("Buyer", "buyer", { ...other, email: "buyer@example.com" });
  const { revision } = await world.admin("GET", `/keys/${owner.keyId}`);
  const units = { provisioned_units: 2, provisioned_pool: "main" };
  await world.admin("PATCH", `/keys/${owner.keyId}`, { revision, ...units });
  await using visit = await world.signedIn(operator, { path: "/pools" });
  const row = visit.page.getByRole("row", { name: /main/ });
  await row.getByText("2 of 78").waitFor();
  await row.getByRole("cell", { name: "76", exact: true }).waitFor();
  const user = { ...other, email: "buyer@example.com" };
  await using own = await world.signedIn(user, { path: "/pools" });
  await own.page.getByRole("cell", { name: "20,000", exact: true }).waitFor();
  while ((await call(owner.key, "ill")) !== 200) await Bun.sleep(100);
  const text = await own.page.getByRole("main").textContent();
  expect(text).not.toMatch(/1,000,000|76|78/);
  await own.expectAccessible();
  await shoot(own, "pools-holder");
  await own.page.goto(`${own.url}/keys/${owner.keyId}`);
  await own.page.getByText("Set by 2 units of pool main").waitFor();
  for (const each of [visit, own]) await each.expectClean();
}, 180_000);

describeWithValkey(() => {
  test("several processes are shown, whether they are alike, and what each does now", async () => {
    await using server = await startValkey();
    const limits = { store: server.url, timeout: "5s" };
    await using many = await startConsole({
      models,
      sections: { ...sections, processes: 3, limits },
    });
    await using visit = await many.signedIn(operator, { path: "/gateways" });
    const { page } = visit;
    await page.getByText("All 3 processes are ready and alike.").waitFor();
    for (const number of [1, 2, 3]) {
      const row = page.getByRole("row", { name: new RegExp(`process ${number}`) });
      await row.getByText("current").waitFor();
      await row.getByRole("cell", { name: /^Open calls0 of|^0 of/ }).waitFor();
    }
    await visit.expectAccessible();
    await shoot(visit, "gateways-3");
    await visit.expectClean();
  }, 180_000);
});

describeWithPostgres((databases) => {
  test("a gateway that is configured differently is told of without a reload, until it has ended", async () => {
    const own = {
      ...sections,
      storage: { url: await databases.server.createDatabase() },
      auth: { peppers: [testPepper] },
    };
    await using first = await startConsole({ models, sections: own });
    await using visit = await first.signedIn(operator, { path: "/gateways" });
    const { page } = visit;
    const home = await page.context().newPage();
    await home.goto(visit.url);
    await home.getByText("Nothing needs you").waitFor();
    await home.getByText(isLive).waitFor();
    await page.getByText("The one process is ready.").waitFor();
    {
      await using _second = await startConsole({ models, sections: own, isNew: true });
      await page.getByText("Processes have loaded different configurations.").waitFor();
      await page.getByText("2 processes use this database, but limits are in").waitFor();
      await home.getByText("Configuration differs").first().waitFor();
      await visit.expectAccessible();
      await shoot(visit, "gateways-differ");
    }
    // It has ended without a word, so it is silent first.
    await page.getByText(/silent for \d+ s/).waitFor();
    await home.getByText("Gateway not ready").waitFor();
    await visit.expectClean();
  }, 180_000);
});

test("a tab that is hidden for half a minute has no stream, and one again when it is seen", async () => {
  await using visit = await world.visit();
  const { page } = visit;
  const streams = openStreams(page.context());
  await page.clock.install();
  await page.goto(visit.url);
  await visit.signIn(operator);
  await page.getByText(isLive).waitFor();
  const show = (isHidden: boolean): Promise<unknown> =>
    page.evaluate(`
      Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    `);
  await show(true);
  await page.clock.fastForward(20_000);
  expect(streams()).toBe(1);
  await page.clock.fastForward(11_000);
  await until(() => streams() === 0);
  await show(false);
  await until(() => streams() === 1);
}, 180_000);

test("the end of a session ends the stream, and signing in begins it anew", async () => {
  await using visit = await world.signedIn(operator, { path: "/targets" });
  const { page, url } = visit;
  await page.getByText(isLive).waitFor();
  const streams = openStreams(page.context());
  const cookies = await page.context().cookies();
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
  const headers = { cookie, origin: url };
  const session: unknown = await (await fetch(`${url}/admin/v1/session`, { headers })).json();
  const { csrf_token: csrf } = session as { csrf_token: string };
  const signOut = { method: "DELETE", headers: { ...headers, "x-csrf-token": csrf } };
  expect((await fetch(`${url}/admin/v1/session`, signOut)).status).toBe(200);
  // No request has been made: the stream itself has told it.
  const overlay = page.getByRole("dialog", { name: "Your session has ended" });
  await overlay.waitFor();
  expect(streams()).toBe(0);
  await overlay.getByLabel("Password").fill(operator.password);
  await page.keyboard.press("Enter");
  await overlay.waitFor({ state: "detached" });
  await until(() => streams() === 1);
  await visit.expectClean();
}, 180_000);

test("pages have no violations in any theme or width, and each takes one request beside the stream", async () => {
  for (const theme of ["light", "dark"] as const) {
    for (const width of [390, 1440]) {
      await using visit = await world.signedIn(operator, { theme, width, path: "/" });
      for (const [path, { read, complete }] of Object.entries(pages)) {
        const { page } = visit;
        visit.apiRequests();
        await page.goto(visit.url + path);
        await complete(page).waitFor();
        await page.getByText(isLive).waitFor();
        const asked = visit.apiRequests().filter((each) => !each.includes("/live?"));
        // The stream may have told of something that the answer does not have yet.
        expect(new Set(asked)).toEqual(new Set(["GET /admin/v1/session", `GET /admin/v1/${read}`]));
        await visit.expectAccessible();
        const sideways =
          "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        expect([path, width, await page.evaluate(sideways)]).toEqual([path, width, 0]);
        await shoot(visit, `${path.slice(1) || "home"}-${width}-${theme}`);
      }
      await visit.expectClean();
    }
  }
}, 120_000);
