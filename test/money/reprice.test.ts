/** Prices that were wrong are made right afterwards, and a month adds up. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { usdOfNano } from "../../src/domain/money/usd.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { startWebhookReceiver, webhookSecret } from "../support/webhook-receiver.ts";
import { until } from "../support/ledger-truth-process.ts";

let gateway: TestGateway;

const models = (input: number, more = "") => `
  sound: { kind: chat, context_window: 200000, targets: [
    { upstream: simulator, model: sound, price: { input: ${input}, output: 2.5 } }] }
  late: { kind: chat, context_window: 200000, targets: [{ upstream: simulator, model: late${more} }] }`;

beforeAll(async () => {
  gateway = await startGateway({ sections: { models: models(1.23) } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

async function ask(model: string): Promise<void> {
  const body = { model, messages: [{ role: "user", content: "Hello" }] };
  expect((await gateway.post("/v1/chat/completions", body)).status).toBe(200);
}

async function admin<Answer>(method: string, path: string, body?: object): Promise<Answer> {
  const response = await gateway.admin(method, `/admin/v1${path}`, body);
  const answer: unknown = await response.json();
  expect([response.status, answer]).toEqual([200, expect.anything()]);
  return answer as Answer;
}

interface Total {
  readonly cost_usd: string | null;
  readonly unpriced_calls: number;
}

async function total(range = "since=2d"): Promise<Total | undefined> {
  const { data } = await admin<{ data: Total[] }>("GET", `/usage/totals?${range}`);
  return data[0];
}

interface Statement {
  readonly total_usd: string;
  readonly calls: number;
  readonly unpriced_calls: number;
  readonly lines: readonly {
    model: string;
    item: string;
    tokens: number | null;
    cost_usd: string | null;
  }[];
}

async function statement(): Promise<Statement> {
  const month = new Date().toISOString().slice(0, 7);
  const { data } = await admin<{ data: { id: string }[] }>("GET", "/accounts");
  return admin("GET", `/accounts/${data[0]?.id}/statement?month=${month}`);
}

const nanoOf = (text: string): bigint => BigInt(text.replace(".", ""));
const sumOf = (amounts: readonly string[]): string =>
  usdOfNano(amounts.reduce((sum, text) => sum + nanoOf(text), 0n));

interface Repriced {
  readonly repriced: number;
  readonly not_priced: number;
  readonly old_usd: string;
  readonly new_usd: string;
  readonly price_version: number;
}

test("rows keep their first cost, and all sums and open budgets move", async () => {
  for (let count = 0; count < 5; count += 1) await ask("sound");
  await ask("late");
  const before = await gateway.usage();
  const { data } = await admin<{ data: { id: string }[] }>("GET", "/accounts");
  const budgetPath = "/admin/v1/budgets";
  const created = await gateway.admin("POST", budgetPath, {
    account_id: data[0]?.id,
    period: "month",
    limit_usd: "100",
    mode: "warn",
  });
  const budget = (await created.json()) as { id: string; spent_usd?: string };
  expect(created.status).toBe(201);
  const first = before.reduce((sum, { costNano = 0 }) => sum + costNano, 0);
  expect(await total()).toMatchObject({ cost_usd: usdOfNano(first), unpriced_calls: 1 });
  const unpriced = before.find(({ costNano }) => costNano === undefined);
  const tokens = (unpriced?.inputTokens ?? 0) + (unpriced?.outputTokens ?? 0);
  const { lines, total_usd: least } = await statement();
  expect(least).toBe(usdOfNano(first));
  expect(lines).toContainEqual({ model: "late", item: "not_priced", tokens, cost_usd: null });

  await gateway.reconfigure({ models: models(2, ", price: { input: 4, output: 8 }") });
  await until("the new prices are published", async () => {
    const dry = await admin<Repriced>("POST", "/usage/reprice", { since: "1d", dry_run: true });
    return dry.price_version > 1;
  });
  const expected = before.reduce((sum, { model, inputTokens, outputTokens }) => {
    const [input, output] = model === "sound" ? [2_000, 2_500] : [4_000, 8_000];
    return sum + inputTokens * input + outputTokens * output;
  }, 0);
  const dry = await admin<Repriced>("POST", "/usage/reprice", { since: "1d", dry_run: true });
  expect(dry).toMatchObject({
    repriced: 6,
    old_usd: usdOfNano(first),
    new_usd: usdOfNano(expected),
  });
  expect(await total()).toMatchObject({ cost_usd: usdOfNano(first), unpriced_calls: 1 });

  const done = await admin<Repriced>("POST", "/usage/reprice", { since: "1d" });
  expect(done).toMatchObject({ repriced: 6, not_priced: 0, new_usd: usdOfNano(expected) });
  // From the sums of a day, and from single calls.
  for (const range of ["since=2d", "since=1h"]) {
    expect(await total(range)).toMatchObject({ cost_usd: usdOfNano(expected), unpriced_calls: 0 });
  }
  const after = await gateway.usage();
  expect(after.map(({ id, costNano }) => [id, costNano])).toEqual(
    before.map(({ id, costNano }) => [id, costNano]),
  );
  expect(after.reduce((sum, { repricedNano = 0 }) => sum + repricedNano, 0)).toBe(expected);
  const shown = await admin<{ spent_usd: string }>("GET", `/budgets/${budget.id}`);
  expect(JSON.stringify(shown)).toContain(usdOfNano(expected));
  const audit = await admin<{ data: { action: string }[] }>("GET", "/audit?action=usage.reprice");
  expect(audit.data).toHaveLength(1);
  // Repeated, it changes nothing.
  const again = await admin<Repriced>("POST", "/usage/reprice", { since: "1d" });
  expect(again).toMatchObject({ repriced: 0, new_usd: "0.000000000" });
});

test("the lines of a statement add up to the rows, adjustments included", async () => {
  await ask("sound");
  const rows = await gateway.usage();
  const { lines, total_usd: sum, calls, unpriced_calls: unpriced } = await statement();
  const nano = rows.reduce(
    (all, { costNano = 0, repricedNano = costNano }) => all + repricedNano,
    0,
  );
  expect([sum, sumOf(lines.map(({ cost_usd }) => cost_usd ?? "no cost"))]).toEqual([
    usdOfNano(nano),
    usdOfNano(nano),
  ]);
  expect([calls, unpriced]).toEqual([rows.length, 0]);
  const output = lines.find(({ model, item }) => model === "sound" && item === "output");
  const sound = rows.filter(({ model }) => model === "sound");
  expect(output?.tokens).toBe(sound.reduce((all, { outputTokens }) => all + outputTokens, 0));
  expect(lines.map(({ item }) => item)).toContain("adjustments");
});

test("one call says how its tokens make up its cost", async () => {
  await ask("sound");
  const row = (await gateway.usage())[0];
  interface Detail {
    readonly cost_usd: string;
    readonly cost_parts: readonly { item: string; tokens: number; cost_usd: string }[];
  }
  const shown = await admin<Detail>("GET", `/usage/calls/${row?.id}`);
  expect(shown.cost_parts.map(({ item, tokens }) => [item, tokens])).toEqual([
    ["input", row?.inputTokens ?? 0],
    ["output", row?.outputTokens ?? 0],
  ]);
  expect(sumOf(shown.cost_parts.map(({ cost_usd }) => cost_usd))).toBe(shown.cost_usd);
});

test("a run that changed costs is an event, once", async () => {
  await using receiver = startWebhookReceiver();
  const webhook = `{ url: "${receiver.url}", secret: ${webhookSecret} }`;
  const path = join(mkdtempSync(join(tmpdir(), "sluice-reprice-")), "usage.ndjson");
  await using told = await startGateway({
    sections: {
      models: models(1),
      ledger: `{ events: { webhook: ${webhook}, file: { path: "${path}" } } }`,
    },
  });
  const run = async (body: object): Promise<{ run: string }> => {
    const response = await told.admin("POST", "/admin/v1/usage/reprice", { since: "1d", ...body });
    expect(response.status).toBe(200);
    return (await response.json()) as { run: string };
  };
  await run({ dry_run: true });
  const first = await run({});
  await until("the event is sent", () => receiver.repriced.length > 0);
  const second = await run({ closed_periods: true });
  await until("the next event is sent", () => receiver.repriced.length > 1);
  const { run: id } = second;
  expect(receiver.repriced).toMatchObject([
    { run: first.run, repriced: 0, closed_periods: false, price_version: 1 },
    { run: id, old_usd: "0.000000000", closed_periods: true },
  ]);
  expect(receiver.rows).toEqual([]);
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
    receiver.repriced.map((event) => ({ type: "usage.repriced", ...event })),
  );
});
