import { afterAll, beforeAll, expect, test } from "bun:test";
import { costOf } from "../../src/domain/money/cost.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";

const target = "simulator/us.anthropic.claude-sonnet-4-6";
const embedded = "simulator/amazon.titan-embed-text-v2:0";
const entry = { provider: "bedrock", model: "anthropic.claude-sonnet-4-6" };
const models = JSON.stringify({
  chat: {
    kind: "chat",
    context_window: 200_000,
    targets: [{ upstream: "simulator", model: "us.anthropic.claude-sonnet-4-6" }],
  },
  embed: {
    kind: "embedding",
    context_window: 8_192,
    targets: [{ upstream: "simulator", model: "amazon.titan-embed-text-v2:0" }],
  },
});
const environments = "[{ name: test, hosts: ['*'], models: ['*'] }]";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ kind: "bedrock", sections: { models, environments } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

interface PricesAnswer {
  readonly version: number;
  readonly data: readonly {
    readonly target: string;
    readonly price: Readonly<Record<string, unknown>> | null;
  }[];
  readonly versions: readonly {
    readonly version: number;
    readonly valid_from: string;
  }[];
}

async function readPrices(query = ""): Promise<PricesAnswer> {
  const answer = await gateway.admin("GET", `/admin/v1/prices${query}`);
  expect(answer.status).toBe(200);
  return (await answer.json()) as PricesAnswer;
}

const newest = async (): Promise<number> => (await readPrices()).versions[0]?.version ?? 0;

async function call(): Promise<void> {
  const body = { model: "chat", messages: [{ role: "user", content: "hello" }], max_tokens: 20 };
  const answer = await gateway.post("/v1/chat/completions", body);
  expect(answer.status).toBe(200);
  await answer.text();
}

/** What a row should cost at USD per 1M tokens, in whole micro-USD each. */
function costAt(row: UsageRecord, input: number, output: number): number | undefined {
  return costOf(row, { input: input * 1e6, output: output * 1e6 }, undefined);
}

test("the first calls have the shipped prices, and the admin API says who says so", async () => {
  await call();
  const [row] = await gateway.usage();
  expect(row).toMatchObject({ target, priceVersion: 1 });
  expect(row && costAt(row, 3.3, 16.5)).toBe(row?.costNano);
  expect(row?.costNano).toBeGreaterThan(0);
  const { version, data } = await readPrices();
  expect(version).toBe(1);
  expect(data.find((each) => each.target === target)).toMatchObject({
    models: ["chat"],
    price: { input: "3.3", cache_read: "0.33", output: "16.5", tiers: {} },
    source: "litellm 1.110.2, genai-prices 0.2.3",
    confidence: "high",
    since: null,
  });
  expect(data.find((each) => each.target === embedded)).toMatchObject({
    price: { input: "0.02", tiers: {} },
  });
});

test("a change of prices under load leaves earlier calls their version", async () => {
  const before = await newest();
  let isOver = false;
  const load = async (): Promise<void> => {
    while (!isOver) await call();
  };
  const callers = Promise.all([load(), load(), load(), load()]);
  const hasRows = async (version: number): Promise<boolean> =>
    (await gateway.usage()).some(({ priceVersion }) => priceVersion === version);
  await until(() => hasRows(before));
  await gateway.reconfigure({ prices: JSON.stringify([{ ...entry, input: 1, output: 2 }]) });
  await until(() => hasRows(before + 1));
  isOver = true;
  await callers;
  const { versions } = await readPrices();
  const since = Date.parse(versions[0]?.valid_from ?? "");
  const rows = await gateway.usage();
  for (const row of rows) {
    const isNew = row.priceVersion === before + 1;
    expect(row.costNano).toBe(isNew ? costAt(row, 1, 2) : costAt(row, 3.3, 16.5));
    if (isNew) expect(row.startedAt).toBeGreaterThanOrEqual(since);
    else expect(row.priceVersion).toBe(1);
  }
});

test("a price of a later day waits for it", async () => {
  const now = [{ ...entry, input: 1, output: 2 }];
  const later = { ...entry, input: 5, output: 5, valid_from: "2099-01-01" };
  const before = await newest();
  await gateway.reconfigure({ prices: JSON.stringify([...now, later]) });
  await call();
  expect((await gateway.usage())[0]?.priceVersion).toBe(before);
  expect(await newest()).toBe(before);
});

test("the same prices publish nothing", async () => {
  const before = await newest();
  await gateway.reconfigure({
    prices: JSON.stringify([{ ...entry, input: "1.00", output: "2" }]),
    routing: "{ attempts: 2 }",
  });
  await gateway.reconfigure({ prices: JSON.stringify([{ ...entry, input: 7, output: 2 }]) });
  await until(async () => (await newest()) > before);
  expect(await newest()).toBe(before + 1);
});

test("a target without a price is listed as such, and its calls have no cost", async () => {
  const free = models.replace(
    '"model":"us.anthropic.claude-sonnet-4-6"',
    '"model":"simulated-chat","bedrock":{"family":"claude-4"}',
  );
  const before = await newest();
  await gateway.reconfigure({ models: free });
  await call();
  const [row] = await gateway.usage();
  expect(row?.costNano).toBeUndefined();
  const { data } = await readPrices();
  expect(data.map(({ target: id, price }) => [id, price === null])).toEqual([
    [embedded, false],
    ["simulator/simulated-chat", true],
  ]);
  // That it has none is published; the target that is gone keeps its price.
  expect(await newest()).toBe(before + 1);
  const { data: all } = await readPrices(`?version=${before + 1}`);
  expect(all.find(({ target: id }) => id === target)?.price).not.toBeNull();
});

test("an unknown version is not found", async () => {
  const answer = await gateway.admin("GET", "/admin/v1/prices?version=999");
  expect(answer.status).toBe(404);
});
