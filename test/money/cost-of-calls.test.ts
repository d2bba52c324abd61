/** What calls cost, from the answer of a provider to the row, the sums and the caller. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { usdOfNano } from "../../src/domain/money/usd.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/ledger-truth-process.ts";

let gateway: TestGateway;

/** USD per million tokens, which are micro-USD a token: 1,000 nano-USD. */
const cheap = { input: 1, output: 2 };
const dear = { input: 10, output: 50 };

beforeAll(async () => {
  gateway = await startGateway({
    sections: {
      routing: "{ cost_header: true, first_backoff: 1ms, longest_backoff: 1ms }",
      models: `
  sound: ${chatModel(target("sound", cheap))}
  unpriced: ${chatModel("{ upstream: simulator, model: nobody-knows }")}
  free: ${chatModel(target("free", { input: 0, output: 0 }))}
  lost: ${chatModel(`${target("fault-slow-first-byte-60001", dear, 1)}, ${target("spare", cheap, 2)}`, "timeouts: { first_byte: 300ms }")}
  half-known: ${chatModel(`{ upstream: simulator, model: fault-slow-first-byte-60002, priority: 1 }, ${target("spare", cheap, 2)}`, "timeouts: { first_byte: 300ms }")}
  failing: ${chatModel(`${target("fault-error-500", dear, 1)}, ${target("spare", cheap, 2)}`)}
  down: ${chatModel(target("fault-bad-request-400", dear))}
  hedged: ${chatModel(`${target("fault-slow-first-byte-60003", dear, 1)}, ${target("swift", cheap, 2)}`, "hedge_after: 50ms")}
  stalls: ${chatModel(target("fault-stall-mid", cheap))}
  vectors: { kind: embedding, context_window: 8000, targets: [${target("vectors", { input: 3 })}] }`,
    },
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

function chatModel(targets: string, more = ""): string {
  return `{ kind: chat, context_window: 200000, targets: [${targets}]${more === "" ? "" : `, ${more}`} }`;
}

function target(model: string, price: object, priority = 1): string {
  const written = JSON.stringify(price).replaceAll('"', "");
  const spaced = written.replaceAll(":", ": ").replaceAll(",", ", ");
  return `{ upstream: simulator, model: ${model}, priority: ${priority}, price: ${spaced} }`;
}

function costAt(price: { input: number; output?: number }, tokens: Tokens): number {
  return 1_000 * (tokens.inputTokens * price.input + tokens.outputTokens * (price.output ?? 0));
}

interface Tokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

const chat = (model: string, more: object = {}) => ({
  model,
  messages: [{ role: "user", content: "Hello" }],
  ...more,
});

async function rowOf(response: Response): Promise<UsageRecord> {
  const id = response.headers.get("x-request-id");
  const row = (await gateway.usage()).find((each) => each.id === id);
  if (row === undefined) throw new Error(`there is no row of ${id}`);
  return row;
}

const surfaces = [
  [
    "/v1/chat/completions",
    chat("sound"),
    { stream: true, stream_options: { include_usage: true } },
  ],
  ["/v1/responses", { model: "sound", input: "Hello" }, { stream: true }],
  ["/v1/messages", { ...chat("sound"), max_tokens: 50 }, { stream: true }],
] as const;

describe.each(surfaces)("%s", (path, body, streamed) => {
  test("a whole answer says in a header what its row costs", async () => {
    const response = await gateway.post(path, body);
    expect(await response.text()).not.toContain("cost_usd");
    const row = await rowOf(response);
    expect(row.costNano).toBe(costAt(cheap, row));
    expect(row.priceVersion).toBe(1);
    expect(response.headers.get("x-sluice-cost-usd")).toBe(usdOfNano(row.costNano ?? -1));
  });

  test("a streamed answer says it in its last usage alone", async () => {
    const response = await gateway.post(path, { ...body, ...streamed });
    const text = await response.text();
    const row = await rowOf(response);
    expect(row.costNano).toBe(costAt(cheap, row));
    expect(text.match(/"cost_usd":"[^"]*"/g)).toEqual([
      `"cost_usd":"${usdOfNano(row.costNano ?? -1)}"`,
    ]);
    expect(response.headers.get("x-sluice-cost-usd")).toBeNull();
  });
});

test("embeddings cost their input", async () => {
  const response = await gateway.post("/v1/embeddings", { model: "vectors", input: ["a", "b c"] });
  const row = await rowOf(response);
  expect(row.costNano).toBe(costAt({ input: 3 }, row));
  expect(response.headers.get("x-sluice-cost-usd")).toBe(usdOfNano(row.costNano ?? -1));
});

test("a call without a price has no cost, and nobody says that it was 0", async () => {
  const response = await gateway.post("/v1/chat/completions", chat("unpriced"));
  expect(response.headers.get("x-sluice-cost-usd")).toBeNull();
  const row = await rowOf(response);
  expect([row.costNano, row.priceVersion]).toEqual([undefined, undefined]);
  const shown = await (await gateway.admin("GET", `/admin/v1/usage/calls/${row.id}`)).json();
  expect(shown).toMatchObject({ cost_usd: null, price_version: null });
  expect(gateway.log.join("")).not.toContain(`"${row.id}","costUsd"`);
});

test("a price of 0 is a price", async () => {
  const row = await rowOf(await gateway.post("/v1/chat/completions", chat("free")));
  expect([row.costNano, row.priceVersion]).toEqual([0, 1]);
});

const streaming = { stream: true, stream_options: { include_usage: true }, max_tokens: 40 };

test("a failed attempt that is billed costs its own target's price", async () => {
  const response = await gateway.post("/v1/chat/completions", chat("lost", streaming));
  const text = await response.text();
  const count = (name: string): number => Number(new RegExp(`"${name}":(\\d+)`).exec(text)?.[1]);
  const answer = {
    inputTokens: count("prompt_tokens"),
    outputTokens: count("completion_tokens"),
  };
  const row = await rowOf(response);
  const lost = {
    inputTokens: row.inputTokens - answer.inputTokens,
    outputTokens: row.outputTokens - answer.outputTokens,
  };
  expect(row.attempts).toBe(2);
  expect(lost.outputTokens).toBe(40);
  expect(row.costNano).toBe(costAt(dear, lost) + costAt(cheap, answer));
});

test("a call has no cost if one of its billed attempts has none", async () => {
  const response = await gateway.post("/v1/chat/completions", chat("half-known", streaming));
  expect(await response.text()).not.toContain("cost_usd");
  const row = await rowOf(response);
  expect([row.outcome, row.attempts, row.costNano]).toEqual(["completed", 2, undefined]);
});

test("an attempt that is not billed costs nothing, nor does a refused call", async () => {
  const row = await rowOf(await gateway.post("/v1/chat/completions", chat("failing")));
  expect([row.attempts, row.costNano]).toEqual([2, costAt(cheap, row)]);
  const failed = await gateway.post("/v1/chat/completions", chat("down"));
  expect(failed.headers.get("x-sluice-cost-usd")).toBeNull();
  expect(await rowOf(failed)).toMatchObject({ outcome: "failed", costNano: 0 });
});

test("a hedged call costs what the target that answered asks", async () => {
  const row = await rowOf(await gateway.post("/v1/chat/completions", chat("hedged")));
  expect(row).toMatchObject({ target: "simulator/swift", mayBeBilledTwice: true });
  expect(row.costNano).toBe(costAt(cheap, row));
});

test("a caller that leaves pays what its row has", async () => {
  const leaving = new AbortController();
  const body = chat("stalls", { stream: true });
  const init = { signal: leaving.signal };
  const response = await gateway.post("/v1/chat/completions", body, init);
  const reader = response.body?.getReader();
  await reader?.read();
  leaving.abort();
  await until("the call is in the ledger", async () => {
    return (await gateway.usage()).some(({ model }) => model === "stalls");
  });
  const row = await rowOf(response);
  expect(row.outcome).toBe("abandoned");
  expect(row.inputTokens).toBeGreaterThan(0);
  expect(row.costNano).toBe(costAt(cheap, row));
});

interface Total {
  readonly group: { readonly model?: string };
  readonly cost_usd: string | null;
  readonly unpriced_calls: number;
}

async function totalsBy(by: string): Promise<readonly Total[]> {
  const response = await gateway.admin("GET", `/admin/v1/usage/totals?by=${by}&since=1d`);
  return ((await response.json()) as { data: Total[] }).data;
}

test("the sums are those of the rows, to the nano-USD", async () => {
  const rows = await gateway.usage();
  const costOf = (some: readonly UsageRecord[]): string =>
    usdOfNano(some.reduce((sum, { costNano = 0 }) => sum + costNano, 0));
  const unpriced = rows.filter(({ costNano }) => costNano === undefined).length;
  const [total] = await totalsBy("");
  expect([total?.cost_usd, total?.unpriced_calls]).toEqual([costOf(rows), unpriced]);
  expect(unpriced).toBeGreaterThan(0);
  const ofModels = await totalsBy("model");
  const models = Map.groupBy(rows, ({ model }) => model);
  expect(ofModels).toHaveLength(models.size);
  for (const { group, cost_usd: cost } of ofModels) {
    const own = models.get(group.model ?? "") ?? [];
    expect(cost).toBe(own.every(({ costNano }) => costNano === undefined) ? null : costOf(own));
  }
  const csv = await (await gateway.admin("GET", "/admin/v1/usage/export?format=csv")).text();
  const [head = "", ...lines] = csv.trim().split("\r\n");
  const column = head.split(",").indexOf("cost_usd");
  const nano = lines.map((line) => line.split(",")[column]?.replace(".", "") ?? "");
  expect(usdOfNano(nano.reduce((sum, text) => sum + BigInt(text === "" ? 0 : text), 0n))).toBe(
    costOf(rows),
  );
});

test("a key is told what it has cost", async () => {
  const { totals } = (await (await gateway.get("/v1/usage")).json()) as {
    totals: Record<"day" | "month", Total>;
  };
  const rows = await gateway.usage();
  const nano = rows.reduce((sum, { costNano = 0 }) => sum + costNano, 0);
  expect(totals.day).toMatchObject({ cost_usd: usdOfNano(nano) });
  expect(totals.month.unpriced_calls).toBe(
    rows.filter(({ costNano }) => costNano === undefined).length,
  );
});
