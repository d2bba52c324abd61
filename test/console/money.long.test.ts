import { afterAll, beforeAll, expect } from "bun:test";
import { until } from "../support/until.ts";
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

/** What calls cost, and what budgets do about it. */

const holder = { email: "bea@example.com", password: "another horse battery" };
const other = { email: "ada@example.com", password: "a third horse battery" };
const canary = canaries[0] ?? "";
const facts = { kind: "chat", context_window: 200_000, max_output_tokens: 4_000 };
const target = { upstream: "simulator", model: "simulated-priced" };
const models = {
  priced: {
    ...facts,
    targets: [{ ...target, price: { input: 2000, cache_read: 0, output: 10_000 } }],
  },
  unpriced: { ...facts, targets: [{ upstream: "simulator", model: "simulated-unpriced" }] },
};

let world: ConsoleWorld;
let mine: Owner;
let theirs: Owner;
beforeAll(async () => {
  world = await startConsole({ models });
  const many = { requestsPerMinute: 1_000 };
  const named = { name: canary, application: "my shop", user: holder, keyName: canaries[4] ?? "" };
  mine = await createOwner(world, { ...many, ...named });
  theirs = await createOwner(world, {
    ...many,
    name: "Theirs",
    application: "their app",
    user: other,
  });
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

interface Answer {
  readonly id: string;
  readonly status: number;
  readonly text: string;
}

async function call(key: string, model = "priced"): Promise<Answer> {
  const response = await fetch(`${world.gateway.dataUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model,
      max_tokens: 50,
      messages: [{ role: "user", content: "Hello!" }],
    }),
  });
  const text = await response.text();
  return { id: response.headers.get("x-request-id") ?? "", status: response.status, text };
}

async function open({ page, url }: Visit, path: string): Promise<void> {
  await page.goto(url + path);
  await page.getByRole("heading", { level: 1 }).waitFor();
}

/** Loads the page again until it is complete: rows and sums come after some time. */
async function reloadUntil({ page }: Visit, isComplete: () => Promise<boolean>): Promise<void> {
  await until(async () => {
    if (await isComplete()) return true;
    await page.reload();
    await page.getByRole("heading", { level: 1 }).waitFor();
    await Bun.sleep(300);
    return isComplete();
  });
}

async function shoot({ page }: Visit, name: string): Promise<void> {
  const folder = process.env["SLUICE_SHOTS"];
  if (folder === undefined) return;
  await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}

test("a budget is created and spent; its refusal says who can raise it; raised, the next call passes", async () => {
  await using visit = await world.signedIn(operator, { path: "/budgets" });
  const { page } = visit;
  await page.getByText("No budget limits what calls may cost here.").waitFor();
  await page.getByRole("button", { name: "Create budget" }).first().click();
  const dialog = page.getByRole("dialog", { name: "Create a budget" });
  await dialog.getByLabel("Account").selectOption(mine.accountId);
  await dialog.getByLabel("Application").selectOption(mine.applicationId);
  await dialog.getByLabel("Limit in USD").fill("zero");
  await visit.expectAccessible();
  await shoot(visit, "budget-create");
  await dialog.getByRole("button", { name: "Create budget" }).click();
  await dialog
    .getByText(/use USD above 0/)
    .first()
    .waitFor();
  await dialog.getByLabel("Limit in USD").fill("1.50");
  await dialog.getByRole("button", { name: "Create budget" }).click();
  await dialog.waitFor({ state: "detached" });
  const row = page.getByRole("row", { name: /my shop/ });
  await row.getByText("Set by an operator").waitFor();
  await row.getByText("$0 of $1.50 (0%)").waitFor();

  let refused = await call(mine.key);
  while (refused.status === 200) refused = await call(mine.key);
  expect(refused.text).toContain("budget_exceeded");
  expect(refused.status).toBe(429);
  await open(visit, `/calls/${refused.id}`);
  await page.getByText(/Too little of the monthly budget of application my shop is left/).waitFor();
  await page
    .getByText(/The operator of the gateway can raise budget bgt_/)
    .first()
    .waitFor();
  await page.getByText(/have it raised: the page Budgets says by whom/).waitFor();
  await visit.expectAccessible();
  await shoot(visit, "budget-refusal");
  await page.getByRole("link", { name: "what is left, and who can raise it" }).click();

  await reloadUntil(visit, () => row.getByText(/^\$1\.\d\d of \$1\.50/).isVisible());
  await page.getByRole("button", { name: "Change the budget of $1.50" }).click();
  const change = page.getByRole("dialog", { name: "Change the budget" });
  await change.getByLabel("Limit in USD").fill("50");
  await visit.expectAccessible();
  await change.getByRole("button", { name: "Save changes" }).click();
  await row.getByText(/^\$1\.\d\d of \$50\.00/).waitFor();
  await until(async () => (await call(mine.key)).status === 200);
  await shoot(visit, "budgets");
  await visit.expectClean();
}, 180_000);

test("a call has its cost and the parts of it; what has no price is not priced, and sums say so", async () => {
  await using visit = await world.signedIn(operator, { path: "/calls" });
  const { page } = visit;
  const { id } = await call(theirs.key);
  const { id: unpriced } = await call(theirs.key, "unpriced");
  await until(() =>
    world.admin("GET", `/usage/calls/${unpriced}`).then(
      () => true,
      () => false,
    ),
  );
  const row = await world.admin("GET", `/usage/calls/${id}`);
  await open(visit, `/calls?account=${theirs.accountId}`);
  await page.getByRole("cell", { name: "not priced" }).waitFor();
  await open(visit, `/calls/${id}`);
  const cost = page.getByRole("region", { name: "Cost" });
  await cost.getByText("Its parts").click();
  await cost.getByRole("row", { name: /Output 50 \$10000|Output \d+ \$10000/ }).waitFor();
  const shown = Number((await cost.getByRole("heading").textContent())?.replace("$", ""));
  expect(Math.abs(shown - Number(row.cost_usd))).toBeLessThan(0.005);
  await visit.expectAccessible();
  await shoot(visit, "call-cost");
  await open(visit, `/calls/${unpriced}`);
  await page.getByRole("heading", { name: "not priced" }).waitFor();
  await open(visit, `/usage?range=1h&metric=cost&by=model&account=${theirs.accountId}`);
  const models = page.getByRole("region", { name: "Groups" });
  await models.getByRole("row", { name: /^unpriced .* not priced$/ }).waitFor();
  await page
    .getByText(/^>= \$/)
    .first()
    .waitFor();
  await page.getByText("1 call has no price").waitFor();
  expect(await page.getByRole("main").textContent()).not.toContain("$0.00");
  await page.getByRole("img", { name: /^Cost by minute/ }).waitFor();
  await visit.expectAccessible();
  await shoot(visit, "usage-cost");
  await open(visit, "/prices");
  const price = page.getByRole("row", { name: /simulated-priced/ });
  await price.getByText("configured").waitFor();
  await price.getByText("$2000", { exact: true }).waitFor();
  await page
    .getByRole("row", { name: /simulated-unpriced/ })
    .getByText("not priced")
    .waitFor();
  await shoot(visit, "prices");
  await visit.expectClean();
}, 180_000);

test("a budget of each end user has no fields of events, and can be changed", async () => {
  await using visit = await world.signedIn(operator, {
    path: `/budgets?account=${mine.accountId}&create=budget`,
  });
  const { page } = visit;
  const dialog = page.getByRole("dialog", { name: "Create a budget" });
  await dialog.getByLabel("When it is spent").waitFor();
  await dialog.getByLabel("Who may spend it").selectOption("Each end user");
  await dialog.getByLabel("Limit in USD").fill("70");
  expect(await dialog.getByLabel("When it is spent").count()).toBe(0);
  expect(await dialog.getByLabel("Tell at these percentages").count()).toBe(0);
  await dialog.getByRole("button", { name: "Create budget" }).click();
  await page.getByRole("button", { name: "Change the budget of $70.00" }).click();
  const change = page.getByRole("dialog", { name: "Change the budget" });
  expect(await change.getByLabel("When it is spent").count()).toBe(0);
  expect(await change.getByLabel("Tell at these percentages").count()).toBe(0);
  await change.getByLabel("Limit in USD").fill("80");
  await change.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("button", { name: "Delete the budget of $80.00" }).click();
  await page.getByRole("button", { name: "Delete budget" }).click();
  await page
    .getByRole("button", { name: "Delete the budget of $80.00" })
    .waitFor({ state: "detached" });
  await visit.expectClean();
});

test("a holder sets budgets of what is its own, cannot change an operator's, and sees nobody else's", async () => {
  await using own = await world.signedIn(holder, {
    path: `/budgets?create=budget&key=${mine.keyId}`,
  });
  const dialog = own.page.getByRole("dialog", { name: "Create a budget" });
  await dialog.getByLabel("Limit in USD").fill("40");
  await dialog.getByLabel("Period").selectOption("day");
  expect(await dialog.getByLabel("Account", { exact: true }).count()).toBe(0);
  await dialog.getByRole("button", { name: "Create budget" }).click();
  await own.page.getByText("Set by the account holder").waitFor();
  await own.expectAccessible();
  await open(own, "/budgets");
  await own.page.getByText("an operator changes it").waitFor();
  await own.page.getByRole("button", { name: "Change the budget of $40.00" }).waitFor();
  await open(own, `/keys/${mine.keyId}`);
  await own.page.getByText("Budgets that its calls are under").click();
  await own.page.getByText(/^key key_\w+, day/).waitFor();
  await own.page.getByText(/^application my shop, month/).waitFor();
  await own.expectAccessible();
  await shoot(own, "key-budgets");
  await open(own, "/playground?model=priced");
  await own.page.getByLabel("Your message").fill("Hello!");
  await own.page.getByRole("button", { name: "Send" }).click();
  await own.page.locator(".answer .muted.small").getByText(/^\$\d/).waitFor();
  await own.expectClean();

  await using foreign = await world.signedIn(other, { path: "/budgets" });
  const paths = ["", `?account=${mine.accountId}`, `?key=${mine.keyId}`];
  for (const query of [...paths, `?application=${mine.applicationId}`]) {
    await open(foreign, `/budgets${query}`);
    await foreign.page.getByText(/^No budget (limits|is of this)/).waitFor();
    const text = (await foreign.page.getByRole("main").textContent()) ?? "";
    expect(text).not.toMatch(/my shop|onerror|\$/);
  }
  expect(await foreign.page.getByRole("link", { name: "Prices" }).count()).toBe(0);
  await foreign.expectClean();
}, 180_000);

test("pages of money have no violations in any theme or width, and each takes one request", async () => {
  const pages = {
    "/budgets": ["budgets", /my shop/],
    "/prices": ["prices", /simulated-priced/],
    "/usage?metric=cost": ["usage/series", /priced|my shop|@SUM/],
  } as const;
  for (const theme of ["light", "dark"] as const) {
    for (const width of [390, 1440]) {
      await using visit = await world.signedIn(operator, { theme, width, path: "/access" });
      const { page } = visit;
      await page.getByText("You have no tokens.").waitFor();
      for (const [path, [read, text]] of Object.entries(pages)) {
        visit.apiRequests();
        await open(visit, path);
        await page.getByRole("row", { name: text }).first().waitFor();
        const asked = visit.apiRequests().map((each) => each.replace(/\?.*/, ""));
        expect(asked).toEqual(["GET /admin/v1/session", `GET /admin/v1/${read}`]);
        await visit.expectAccessible();
        const sideways =
          "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        expect([path, width, await page.evaluate(sideways)]).toEqual([path, width, 0]);
        await shoot(visit, `${/\w+/.exec(path)?.[0]}-${width}-${theme}`);
      }
      await visit.expectClean();
    }
  }
}, 120_000);
