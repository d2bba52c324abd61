import { afterAll, beforeAll, expect } from "bun:test";
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
import { until } from "../support/until.ts";

/** Usage and calls: what pages show is what happened, and no more than the user may see. */

const holder = { email: "bea@example.com", password: "another horse battery" };
const other = { email: "ada@example.com", password: "a third horse battery" };
const target = { upstream: "simulator" };
const chatModel = { kind: "chat", context_window: 200_000, max_output_tokens: 4_000 };
const models = {
  replaced: {
    ...chatModel,
    targets: [{ ...target, model: "fault-error-500" }],
    fallbacks: ["alpha-haiku-3.5"],
  },
  cut: { ...chatModel, targets: [{ ...target, model: "fault-reset" }] },
};

const canary = canaries[0] ?? "";

let world: ConsoleWorld;
let mine: Owner;
let theirs: Owner;
let ids: Readonly<Record<"plain" | "limited" | "fallback" | "cut" | "invalid" | "theirs", string>>;
beforeAll(async () => {
  const tried = { mode: "audit", requests_per_minute: 1, tokens_per_minute: 1_000_000 };
  world = await startConsole({ models, sections: { plans: { tried }, tags: ["team"] } });
  mine = await createOwner(world, {
    name: canary,
    keyName: canary,
    application: "shop",
    user: holder,
    requestsPerMinute: 1_000,
  });
  theirs = await createOwner(world, {
    name: "Their company",
    keyName: "Their company",
    application: "theirs",
    user: other,
    requestsPerMinute: 1,
  });
  const calls: string[] = [];
  for (let index = 0; index < 7; index += 1) {
    calls.push((await chat(mine.key, { model: "alpha-sonnet-4", text: `count: ${index + 3}` })).id);
  }
  const replaced = await chat(mine.key, { model: "replaced", text: "count: 9", stream: true });
  const cut = await chat(mine.key, { model: "cut", text: "bulk: 4", stream: true });
  const invalid = await post(mine.key, { model: "alpha-sonnet-4", messages: "hello" });
  expect([replaced.status, cut.status, invalid.status]).toEqual([200, 200, 400]);
  const theirCall = await chat(theirs.key, { model: "alpha-sonnet-4", text: "Hello!" });
  const limited = await chat(theirs.key, { model: "alpha-sonnet-4", text: "Hello!" });
  expect(limited.status).toBe(429);
  ids = {
    plain: calls[0] ?? "",
    fallback: replaced.id,
    cut: cut.id,
    invalid: invalid.id,
    limited: limited.id,
    theirs: theirCall.id,
  };
  for (const id of Object.values(ids)) {
    await known(id);
  }
}, 180_000);
afterAll(() => world[Symbol.asyncDispose]());

/** Resolves once the ledger or the refusals have it. */
function known(id: string): Promise<void> {
  return until(() =>
    world.admin("GET", `/explain/${id}`).then(
      () => true,
      () => false,
    ),
  );
}

interface Called {
  readonly id: string;
  readonly status: number;
}

async function post(key: string, body: object): Promise<Called> {
  const response = await fetch(`${world.gateway.dataUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  await response.text().catch(() => undefined);
  return { id: response.headers.get("x-request-id") ?? "", status: response.status };
}

function chat(
  key: string,
  { model, text, stream = false }: { model: string; text: string; stream?: boolean },
): Promise<Called> {
  return post(key, { model, stream, messages: [{ role: "user", content: text }] });
}

/** A page of the console by its path, once it shows what it has read. */
async function open({ page, url }: Visit, path: string): Promise<void> {
  await page.goto(url + path);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.getByRole("status", { name: "Loading" }).waitFor({ state: "detached" });
}

const number = (text: string): number => Number(text.replaceAll(/\D/g, ""));

test("the figures of a group equal the simulator's, to the token", async () => {
  const answered = (world.simulator?.truth.entries ?? []).filter(({ model, status }) => {
    return model.includes("sonnet") && status === 200;
  });
  expect(answered).toHaveLength(8);
  const truth = (name: "promptTokens" | "completionTokens"): number =>
    answered.reduce((sum, entry) => sum + entry[name], 0);
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, "/usage?by=model&range=1h");
  const row = page
    .getByRole("region", { name: "Groups" })
    .last()
    .getByRole("row", { name: /alpha-sonnet-4/ });
  await row.waitFor();
  const cells = await row.getByRole("cell").allTextContents();
  expect([cells[0], cells[2], cells[3], cells[5]].map((cell) => number(cell ?? ""))).toEqual([
    8,
    0,
    truth("promptTokens"),
    truth("completionTokens"),
  ]);
  await page.getByRole("button", { name: "Show as table" }).click();
  const chart = page.getByRole("table", { name: /^Tokens by minute/ });
  const names = await chart.getByRole("columnheader").allTextContents();
  const column = names.indexOf("alpha-sonnet-4");
  expect(column).toBeGreaterThan(0);
  await visit.expectAccessible();
  await visit.expectClean();
});

test("one request a view; the address holds the view; a group leads to its calls", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, "/keys");
  await page.getByRole("table").waitFor();
  visit.apiRequests();
  await page.getByRole("link", { name: "Usage", exact: true }).click();
  await page.getByRole("img", { name: /^Tokens by/ }).waitFor();
  await page.waitForLoadState("networkidle");
  expect(visit.apiRequests()).toHaveLength(1);
  await page.getByLabel("Metric").selectOption("calls");
  await page.getByLabel("Group by").selectOption("model");
  await page.getByLabel("Range").selectOption("1h");
  await page.waitForURL(/metric=calls.*by=model.*range=1h|range=1h/);
  await page.reload();
  expect(await page.getByLabel("Metric").inputValue()).toBe("calls");
  expect(await page.getByLabel("Group by").inputValue()).toBe("model");
  await page.getByRole("link", { name: "replaced" }).click();
  await page.getByRole("heading", { name: "Calls" }).waitFor();
  expect(page.url()).toContain("model=replaced");
  expect(page.url()).toContain("range=1h");
  await page.getByRole("table", { name: "Calls" }).waitFor();
  expect(await page.getByRole("rowheader").count()).toBe(1);
  await visit.expectClean();
});

test("a drag over the chart zooms, and a double click goes back", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, "/usage?range=1h&by=none");
  const chart = page.getByRole("img", { name: /^Tokens by minute/ });
  await chart.locator("canvas").waitFor();
  const box = await chart.locator(".u-over").boundingBox();
  if (box === null) throw new Error("there is no chart");
  const [from, to, y] = [box.x + box.width * 0.7, box.x + box.width - 2, box.y + box.height / 2];
  await page.mouse.move(from, y);
  await page.mouse.down();
  await page.mouse.move(to, y, { steps: 5 });
  await page.mouse.up();
  await page.waitForURL(/range=\d{4}-\d\d-\d\dT/);
  await chart.locator("canvas").waitFor();
  await page
    .getByRole("img", { name: /^Tokens by minute/ })
    .locator(".u-over")
    .dblclick();
  await page.waitForURL((url) => url.searchParams.get("range") === "1h");
  await visit.expectClean();
});

test("the pages of a 429, a fallback, a cut stream, a 400 and of nothing explain them", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  const shows = async (id: string, ...texts: readonly (string | RegExp)[]): Promise<void> => {
    await open(visit, `/calls/${id}`);
    for (const text of texts) await page.getByText(text).first().waitFor();
    await visit.expectAccessible();
  };
  await shows(
    ids.limited,
    "429 rate_limit_exceeded",
    "requests_per_minute",
    /1 of 1 requests/,
    /What to do/,
    /it would have fitted/,
  );
  await shows(ids.fallback, "completed", "unavailable", "answered", "tried the next target");
  expect(await page.getByRole("table", { name: "Attempts" }).getByRole("row").count()).toBe(3);
  await shows(ids.cut, "failed", "broken-answer");
  await shows(ids.invalid, "refused", "400 invalid_type", "invalid_request", "messages");
  await shows(`req_${"0".repeat(32)}`, /There is no record of this request/, /sluice explain/);
  await page.getByLabel("Find by id").fill(ids.invalid);
  await page.keyboard.press("Enter");
  await page.getByText("400 invalid_type").waitFor();
  await open(visit, "/calls?view=refusals");
  await page.getByText("400 invalid_type").waitFor();
  await visit.expectAccessible();
  await visit.expectClean();
});

test("filters, the export, and new calls behind a button", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, "/calls?range=1h");
  await page.getByRole("table", { name: "Calls" }).waitFor();
  await page.getByRole("button", { name: "Filter..." }).click();
  const dialog = page.getByRole("dialog", { name: "Filter" });
  await dialog
    .getByLabel("Key")
    .locator("option", { hasText: "Their company" })
    .waitFor({ state: "attached" });
  await visit.expectAccessible();
  await dialog.getByLabel("Key").selectOption(mine.keyId);
  await dialog.getByLabel("Outcome").selectOption("completed");
  const outcomes = await dialog.getByLabel("Outcome").locator("option").allTextContents();
  expect(outcomes).toEqual(["Any", "completed", "failed", "caller left", "interrupted"]);
  await dialog.getByRole("button", { name: "Show these" }).click();
  await page.waitForURL(/outcome=completed/);
  const chip = page.getByRole("button", { name: /^Remove the filter Key/ });
  await chip.getByText(canary).waitFor();
  const rows = page.getByRole("table", { name: "Calls" }).getByRole("rowheader");
  await until(async () => (await rows.count()) === 8);
  await page.getByRole("button", { name: "Remove the filter Outcome" }).click();
  await until(async () => (await rows.count()) === 9);
  const began = (await rows.allTextContents()).join();
  const { id } = await chat(mine.key, { model: "alpha-sonnet-4", text: "Hello!" });
  await known(id);
  expect((await rows.allTextContents()).join()).toBe(began);
  await page.getByRole("button", { name: "Refresh" }).click();
  await until(async () => (await rows.count()) === 10);
  // Without filters, the live stream says that there are some.
  await open(visit, "/calls?range=1h");
  await page.getByRole("table", { name: "Calls" }).waitFor();
  const count = await rows.count();
  await chat(mine.key, { model: "alpha-sonnet-4", text: "Hello!" });
  await page.getByRole("button", { name: "Show new calls" }).click();
  await until(async () => (await rows.count()) === count + 1);
  await open(visit, `/calls?range=1h&key=${mine.keyId}`);
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: "Export calls (CSV)" }).click();
  const text = await Bun.file(await (await downloading).path()).text();
  expect(text.trim().split("\r\n")).toHaveLength(12);
  await visit.expectClean();
});

test("the table of groups is exported as it is shown, without formulas", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  const { revision } = await world.admin("GET", `/keys/${theirs.keyId}`);
  await world.admin("PATCH", `/keys/${theirs.keyId}`, { name: '=1+1, "sum"', revision });
  await open(visit, `/usage?range=1h&by=key&account=${theirs.accountId}`);
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: "Export this table (CSV)" }).click();
  const download = await downloading;
  expect(download.suggestedFilename()).toBe("usage-by-key.csv");
  const [head, row, ...rest] = (await Bun.file(await download.path()).text()).split("\r\n");
  expect(head).toStartWith("key,calls,failed_calls,input_tokens,");
  expect(row).toStartWith(`"'=1+1, ""sum""",1,0,`);
  expect(rest).toEqual([""]);
  await visit.expectClean();
});

test("a filter by 429 leads to the refusals that are no calls", async () => {
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, `/calls?range=1h&status=429&account=${theirs.accountId}`);
  await page.getByText("No call fits these filters.").waitFor();
  await page.getByRole("link", { name: "the last refusals that fit" }).click();
  const rows = page.getByRole("table", { name: "Last refusals" }).getByRole("rowheader");
  await until(async () => (await rows.count()) === 1);
  await page.getByText("429 rate_limit_exceeded").waitFor();
  await page.getByRole("button", { name: "Remove the filter Account: Their company" }).waitFor();
  await rows.getByRole("link").click();
  await page.getByRole("link", { name: "Their company" }).first().waitFor();
  await visit.expectClean();
});

test("an account holder sees nothing of another account by address, filter or export", async () => {
  await using visit = await world.signedIn(holder);
  const { page } = visit;
  const foreign = [theirs.accountId, theirs.keyId, theirs.applicationId, "Their company"];
  const paths = [
    "/usage?range=1h",
    `/usage?range=1h&by=application&account=${theirs.accountId}`,
    `/usage?range=1h&key=${theirs.keyId}`,
    `/calls?range=1h&account=${theirs.accountId}`,
    `/calls?range=1h&key=${theirs.keyId}&application=${theirs.applicationId}`,
    `/calls?view=refusals&account=${theirs.accountId}`,
    `/calls?view=refusals&key=${theirs.keyId}`,
    `/calls/${ids.theirs}`,
    `/calls/${ids.limited}`,
  ];
  for (const path of paths) {
    const reading: Promise<string>[] = [];
    const keep = (response: { url(): string; text(): Promise<string> }): void => {
      const { pathname } = new URL(response.url());
      if (pathname.startsWith("/admin/") && pathname !== "/admin/v1/live") {
        reading.push(response.text());
      }
    };
    page.on("response", keep);
    await open(visit, path);
    page.off("response", keep);
    const answers = await Promise.all(reading);
    expect(answers.length).toBeGreaterThan(1);
    for (const answer of answers) for (const text of foreign) expect(answer).not.toContain(text);
    if (path.startsWith("/calls/")) await page.getByText(/There is no record/).waitFor();
  }
  const mineAlone = await page.request.get(
    `${visit.url}/admin/v1/usage/export?since=1h&account_id=${theirs.accountId}`,
  );
  expect((await mineAlone.text()).trim().split("\r\n")).toHaveLength(1);
  await open(visit, "/usage?range=1h&by=key");
  await page.getByRole("link", { name: canary, exact: true }).waitFor();
  await visit.expectClean();
});

test("an auditor of one account sees it alone, and no targets", async () => {
  const auditor = { email: "aud@example.com", password: "a fourth horse battery" };
  const user = { ...auditor, role: "auditor", account_id: theirs.accountId };
  await world.admin("POST", "/users", user);
  await using visit = await world.signedIn(auditor);
  const { page } = visit;
  await open(visit, "/usage?range=1h&by=target");
  await page.getByRole("img", { name: /^Tokens by/ }).waitFor();
  const offered = await page.getByLabel("Group by").locator("option").allTextContents();
  expect(offered).toContain("Model");
  expect(offered).not.toContain("Target");
  expect(offered).not.toContain("Account");
  await open(visit, "/calls?range=1h");
  await page.getByRole("table", { name: "Calls" }).waitFor();
  expect(await page.getByRole("rowheader").count()).toBe(1);
  await visit.expectClean();
});

test("both themes and widths have no violations, and nothing scrolls sideways", async () => {
  for (const theme of ["light", "dark"] as const) {
    for (const width of [320, 390, 1440]) {
      await using visit = await world.signedIn(operator, { theme, width });
      const { page } = visit;
      for (const path of [
        "/usage?range=1h&by=key",
        "/calls?range=1h",
        `/calls/${ids.fallback}`,
        `/calls/${ids.limited}`,
      ]) {
        await open(visit, path);
        await visit.expectAccessible();
        const overflow = await page.evaluate(
          "document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        expect([path, width, overflow]).toEqual([path, width, 0]);
        const folder = process.env["SLUICE_SHOTS"];
        if (folder !== undefined) {
          const name = `${path.replaceAll(/\W+/g, "-").slice(1, 30)}-${theme}-${width}.png`;
          await page.screenshot({ path: `${folder}/${name}`, fullPage: true });
        }
      }
      await visit.expectClean();
    }
  }
}, 180_000);

test("the page of a call that a plan in audit served asks for nothing", async () => {
  const wanted = { application_id: mine.applicationId, plan: "tried" };
  const issued: { readonly api_key: string } = await world.admin("POST", "/keys", wanted);
  const key = issued.api_key;
  await chat(key, { model: "alpha-haiku-3.5", text: "Hello!" });
  const { id, status } = await chat(key, { model: "alpha-haiku-3.5", text: "Hello!" });
  expect(status).toBe(200);
  await known(id);
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, `/calls/${id}`);
  await page.getByText("200 (429)").waitFor();
  await page.getByText("Nothing: it was served.").waitFor();
  await page.getByText("Set by plan tried").waitFor();
  expect(await page.getByText(/Repeat the request|audit:/).count()).toBe(0);
  await visit.expectAccessible();
});

test("usage is grouped by end user and by the key of a tag, and a call leads to both", async () => {
  const messages = [{ role: "user", content: "Hello!" }];
  const labels = { safety_identifier: "ann", metadata: { team: "search" } };
  const { id } = await post(mine.key, { model: "alpha-haiku-3.5", messages, ...labels });
  await known(id);
  await using visit = await world.signedIn();
  const { page } = visit;
  await open(visit, `/calls/${id}`);
  await page.getByRole("link", { name: "search", exact: true }).click();
  await page.getByRole("button", { name: "Remove the filter Tag: team=search" }).waitFor();
  await page.getByRole("rowheader").first().waitFor();
  expect(await page.getByRole("rowheader").count()).toBe(1);
  await page.goBack();
  await page.getByRole("link", { name: /^eu_/ }).click();
  await page.getByRole("button", { name: /^Remove the filter End user: eu_/ }).waitFor();
  await open(visit, "/usage?range=1h&by=end_user");
  await page.getByRole("rowheader", { name: "none" }).waitFor();
  await page.getByRole("link", { name: /^eu_/ }).waitFor();
  await page.getByLabel("Group by").selectOption("tag");
  await page.getByLabel("Tag key").fill("team");
  await page.keyboard.press("Enter");
  await page.getByRole("rowheader", { name: "none" }).waitFor();
  await page.getByRole("link", { name: "search", exact: true }).click();
  await page.getByRole("button", { name: "Remove the filter Tag: team=search" }).waitFor();
  await page.getByRole("rowheader").first().waitFor();
  expect(await page.getByRole("rowheader").count()).toBe(1);
  await visit.expectClean();
});
