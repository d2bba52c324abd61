import { afterAll, beforeAll, expect } from "bun:test";
import { gunzipSync, gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { type ConsoleWorld, operator, startConsole, testInBrowser as test } from "./support.ts";

const pages = [
  "/",
  "/keys",
  "/models",
  "/playground",
  "/usage",
  "/calls",
  "/budgets",
  "/targets",
  "/pools",
  "/gateways",
  "/accounts",
  "/prices",
  "/users",
  "/audit",
  "/configuration",
  "/access",
];

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole();
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

test("the shell is at most 200,000 bytes in gzip, over all files that the first page loads", async () => {
  await using visit = await world.visit();
  const sizes = new Map<string, number>();
  visit.page.on("response", (response) => {
    const name = new URL(response.url()).pathname;
    if (name.startsWith("/admin/")) return;
    sizes.set(name, 0);
  });
  await visit.page.goto(visit.url);
  await visit.page.getByRole("heading", { level: 1 }).waitFor();
  for (const name of sizes.keys()) {
    const response = await fetch(visit.url + name, {
      headers: { "accept-encoding": "gzip" },
      decompress: false,
    });
    expect(response.headers.get("content-encoding")).toBe("gzip");
    const body = new Uint8Array(await response.arrayBuffer());
    expect(gunzipSync(body).byteLength).toBeGreaterThan(0);
    sizes.set(name, body.byteLength);
  }
  const sum = [...sizes.values()].reduce((total, size) => total + size, 0);
  process.stdout.write(`shell: ${sum} bytes in ${sizes.size} files\n`);
  expect(sizes.size).toBeGreaterThan(2);
  expect([...sizes, sum <= 200_000]).toContain(true);
});

test("a wrong password is said, a right one opens the first page, and signing out closes it", async () => {
  await using visit = await world.visit();
  const { page } = visit;
  await page.goto(`${visit.url}/keys?status=active`);
  await page.getByLabel("Email address").fill(operator.email);
  await page.getByLabel("Password").fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("Request req_").waitFor();
  await visit.expectAccessible();
  await visit.signIn(operator);
  await page.getByRole("heading", { name: "Applications and keys" }).waitFor();
  expect(page.url()).toBe(`${visit.url}/keys?status=active`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to Sluice" }).waitFor();
  await visit.expectClean();
});

test("the shell has no violations in both themes and widths, and nothing scrolls sideways", async () => {
  for (const theme of ["light", "dark"] as const) {
    for (const width of [320, 390, 1440]) {
      await using visit = await world.signedIn(operator, { theme, width });
      await visit.page.getByRole("table").waitFor();
      await visit.expectAccessible();
      const overflow = await visit.page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      expect([width, overflow]).toEqual([width, 0]);
      await visit.page.keyboard.press("?");
      await visit.page.getByRole("dialog").waitFor();
      await visit.expectAccessible();
      await visit.expectClean();
    }
  }
}, 120_000);

test("the keyboard alone reaches everything: skip link, search, help and pages", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  await page.getByRole("table").waitFor();
  await page.reload();
  await page.getByRole("table").waitFor();
  const focused = (): Promise<unknown> =>
    page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()");
  const order: unknown[] = [];
  for (let step = 0; step < 4; step += 1) {
    await page.keyboard.press("Tab");
    order.push(await focused());
  }
  expect(order).toEqual(["Skip to the content", "Sluice", "search", "Home"]);
  await page.keyboard.press("/");
  expect(await focused()).toBe("search");
  await page.keyboard.type("nonsense");
  await page.keyboard.press("Enter");
  await page.getByText("Ids begin with").waitFor();
  await visit.expectAccessible();
  await page.keyboard.press("Escape");
  await page.locator("h1").focus();
  await page.keyboard.press("g");
  await page.keyboard.press("k");
  expect(new URL(page.url()).pathname).toBe("/keys");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await visit.expectClean();
});

/** The place in the document of what has the focus, and whether it can be seen; undefined: nothing has it. */
const focusedPlace = `(() => {
  const focused = document.activeElement;
  if (focused === document.body) return undefined;
  const { width, height } = focused.getBoundingClientRect();
  const place = [...document.querySelectorAll("*")].indexOf(focused);
  return { place, isVisible: width > 0 && height > 0, text: focused.outerHTML.slice(0, 120) };
})()`;
interface FocusedPlace {
  readonly place: number;
  readonly isVisible: boolean;
  readonly text: string;
}

/** What the keyboard has to reach. One radio button stands for its group. */
const usableCount = `[...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")]
  .filter((each) => each.tabIndex >= 0 && !each.disabled && each.type !== "radio")
  .filter((each) => each.checkVisibility({ visibilityProperty: true })).length`;

/** Once the page has all that it asked for. */
async function countUsable(page: Page): Promise<number> {
  for (let before = -1; ;) {
    await page.getByRole("status", { name: "Loading" }).waitFor({ state: "detached" });
    const now = Number(await page.evaluate(usableCount));
    if (now === before) return now;
    before = now;
    await page.waitForTimeout(400);
  }
}

test("on every page, Tab goes through all that can be used, in the order in which it stands", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  for (const path of pages) {
    await page.goto(`${visit.url}${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    const usable = await countUsable(page);
    const reached: FocusedPlace[] = [];
    for (let step = 0; step < usable + 20; step += 1) {
      await page.keyboard.press("Tab");
      const next = (await page.evaluate(focusedPlace)) as FocusedPlace | undefined;
      if (next === undefined || next.place === reached[0]?.place) break;
      reached.push(next);
    }
    expect(reached.filter(({ isVisible }) => !isVisible)).toEqual([]);
    const places = reached.map(({ place }) => place);
    expect([path, places]).toEqual([path, places.toSorted((one, other) => one - other)]);
    expect([path, reached.length >= usable, new Set(places).size]).toEqual([
      path,
      true,
      reached.length,
    ]);
  }
  await visit.expectClean();
}, 120_000);

test("on a phone, More has the other pages and the sign-out, and a navigation closes it", async () => {
  await using visit = await world.signedIn(operator, { width: 390, theme: "dark" });
  const { page } = visit;
  await page.getByRole("table").waitFor();
  expect(await page.getByRole("button", { name: "Sign out" }).isVisible()).toBe(false);
  await page.getByRole("button", { name: "More" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Sign out" }).waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "More" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  await visit.expectAccessible();
  const links = page.getByRole("navigation", { name: "Pages" }).locator(".nav-link");
  for (const link of await links.all()) expect(await link.isVisible()).toBe(true);
  await links.last().click();
  await page.getByRole("button", { name: "Sign out" }).waitFor({ state: "hidden" });
  expect(await page.getByRole("button", { name: "More" }).getAttribute("aria-expanded")).toBe(
    "false",
  );
  await visit.expectClean();
});

test("in forced colours every part can still be seen", async () => {
  await using visit = await world.signedIn(operator);
  const { page } = visit;
  await page.emulateMedia({ forcedColors: "active" });
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Keys" }).click();
  await page.getByRole("table").waitFor();
  const borders = await page.evaluate(
    `[...document.querySelectorAll("main button, main select, .table-frame")]
      .map((each) => getComputedStyle(each).borderTopWidth)`,
  );
  expect(new Set(borders as string[])).toEqual(new Set(["1px"]));
  await visit.expectAccessible();
});

test("the theme is a choice that the server writes into the page", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  await page.getByLabel("Theme").selectOption("dark");
  await page.reload();
  expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
  const response = await fetch(visit.url, { headers: { cookie: "sluice_theme=light" } });
  expect(await response.text()).toContain('data-theme="light"');
  await visit.expectClean();
});

test("files are compressed and kept for ever, pages are asked for each time", async () => {
  const { adminUrl } = world.gateway;
  const page = await fetch(adminUrl, { headers: { "accept-encoding": "br" } });
  expect(page.headers.get("cache-control")).toBe("no-cache");
  const etag = page.headers.get("etag") ?? "";
  const html = await page.text();
  const again = await fetch(adminUrl, {
    headers: { "accept-encoding": "br", "if-none-match": etag },
  });
  expect(again.status).toBe(304);
  const [, script = ""] = /src="([^"]+\.js)"/.exec(html) ?? [];
  const file = await fetch(adminUrl + script, { headers: { "accept-encoding": "identity" } });
  expect(file.headers.get("cache-control")).toContain("immutable");
  expect(gzipSync(await file.text()).byteLength).toBeGreaterThan(50_000);
  const { headers: icon } = await fetch(`${adminUrl}/favicon.ico`);
  expect([icon.get("content-type"), icon.get("cache-control")]).toEqual([
    "image/svg+xml",
    "no-cache",
  ]);
  expect((await fetch(`${adminUrl}/assets/..%2f..%2fpackage.json`)).status).toBe(404);
  expect((await fetch(`${adminUrl}/assets/nothing.js`)).status).toBe(404);
  expect((await fetch(`${adminUrl}/nothing`)).status).toBe(404);
});
