import { metricsOf } from "../support/metrics-of.ts";
import { expect, test } from "bun:test";
import { chatOf, errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** Provisioned throughput over HTTP: requested capacity, served class, and headers. */

const pools = (tokens: number, more = ""): string => `
  shared: { tokens_per_minute: ${tokens}, unit_tokens_per_minute: 1000${more} }`;
const models = `
  chat-model:
    kind: chat
    context_window: 8000
    max_output_tokens: 4000
    targets: [{ upstream: simulator, model: pooled, pool: shared }]
  spilling:
    kind: chat
    context_window: 8000
    max_output_tokens: 4000
    targets:
      - { upstream: simulator, model: pooled, pool: shared, priority: 1 }
      - { upstream: simulator, model: open, priority: 2 }`;

const sections = { pools: pools(100_000), models };

interface Wish {
  readonly model?: string;
  readonly capacity?: string;
  readonly tokens?: number;
  readonly content?: string;
  readonly signal?: AbortSignal;
}

async function callWith(
  gateway: TestGateway,
  key: string,
  {
    model = "chat-model",
    capacity = "auto",
    tokens = 100,
    content = "echo: hi",
    ...init
  }: Wish = {},
): Promise<Response> {
  return gateway.post(
    "/v1/chat/completions",
    { model, max_tokens: tokens, messages: [{ role: "user", content }] },
    { ...init, headers: { authorization: `Bearer ${key}`, "x-sluice-capacity": capacity } },
  );
}

test("calls within the guarantee are provisioned, those above it spill, and both are recorded so", async () => {
  await using gateway = await startGateway({ sections });
  const { text: key } = await gateway.createKey({ provisionedUnits: 1, provisionedPool: "shared" });
  const served: (string | null)[] = [];
  for (let call = 0; call < 3; call += 1) {
    // A guarantee of 1,000 a minute has a window of eight minutes, for the largest request: 8,000.
    const response = await callWith(gateway, key, { tokens: 3_500 });
    expect((await chatOf(response)).choices).toHaveLength(1);
    served.push(response.headers.get("x-sluice-served-by"));
  }
  // Little of each reservation is used, so reservations of whole caps come one after the other.
  expect(served).toEqual(["provisioned", "provisioned", "provisioned"]);
  const onDemand = await callWith(gateway, key, { capacity: "on-demand-only" });
  expect((await chatOf(onDemand)).choices).toHaveLength(1);
  expect(onDemand.headers.get("x-sluice-served-by")).toBe("on-demand");
  const rows = await gateway.usage();
  expect(rows.map(({ capacityClass }) => capacityClass).toSorted()).toEqual([
    "on-demand",
    "provisioned",
    "provisioned",
    "provisioned",
  ]);
});

test("calls above the guarantee spill, or are refused if they ask for it alone", async () => {
  await using gateway = await startGateway({ sections });
  const { text: key } = await gateway.createKey({ provisionedUnits: 1, provisionedPool: "shared" });
  // Some 2,400 tokens by its bytes and 4,000 by its cap: one fits into eight minutes, two do not.
  const large = { tokens: 4_000, content: `echo: ${"word ".repeat(1_400)}` };
  const first = await callWith(gateway, key, { ...large, capacity: "provisioned-only" });
  expect((await chatOf(first)).choices).toHaveLength(1);
  expect(first.headers.get("x-sluice-served-by")).toBe("provisioned");
  const strict = await callWith(gateway, key, { ...large, capacity: "provisioned-only" });
  const { code } = await errorOf(strict);
  expect([strict.status, code]).toEqual([429, "rate_limit_exceeded"]);
  expect(Number(strict.headers.get("retry-after-ms"))).toBeGreaterThan(0);
  const spilled = await callWith(gateway, key, large);
  expect((await chatOf(spilled)).choices).toHaveLength(1);
  expect(spilled.headers.get("x-sluice-served-by")).toBe("spillover");
});

test("a key without units cannot ask for provisioned throughput alone", async () => {
  await using gateway = await startGateway({ sections });
  const response = await callWith(gateway, gateway.key, { capacity: "provisioned-only" });
  const { code, param } = await errorOf(response);
  expect([response.status, code, param]).toEqual([400, "invalid_value", "x-sluice-capacity"]);
});

test("a dedicated pool serves its buyers alone; others go where there is no pool", async () => {
  await using gateway = await startGateway({
    sections: { models, pools: pools(100_000, ", kind: dedicated") },
  });
  const refused = await callWith(gateway, gateway.key);
  expect((await errorOf(refused)).code).toBe("model_unavailable");
  const elsewhere = await callWith(gateway, gateway.key, { model: "spilling" });
  expect((await chatOf(elsewhere)).choices).toHaveLength(1);
  const [row] = await gateway.usage();
  expect(row?.target).toBe("simulator/open");
  const { text: key } = await gateway.createKey({ provisionedUnits: 1, provisionedPool: "shared" });
  const own = await callWith(gateway, key, { model: "spilling" });
  expect((await chatOf(own)).choices).toHaveLength(1);
  expect((await gateway.usage())[0]).toMatchObject({
    target: "simulator/pooled",
    capacityClass: "provisioned",
  });
});

test("a full pool lets calls wait their turn as long as their plan allows, and reports the wait", async () => {
  await using gateway = await startGateway({
    simulator: { firstTokenDelayMs: 150 },
    sections: {
      models,
      pools: pools(100_000, ", max_in_flight: 1"),
      plans: `
  patient: { requests_per_minute: 1000, tokens_per_minute: 1000000, queue_timeout: 10s }
  hasty: { requests_per_minute: 1000, tokens_per_minute: 1000000 }`,
    },
  });
  const patient = await gateway.createKey({ plan: "patient", account: "one" });
  const hasty = await gateway.createKey({ plan: "hasty", account: "two" });
  const first = callWith(gateway, patient.text);
  await Bun.sleep(50);
  const [waiting, refused] = await Promise.all([
    callWith(gateway, patient.text),
    callWith(gateway, hasty.text),
  ]);
  expect((await chatOf(await first)).choices).toHaveLength(1);
  expect((await chatOf(waiting)).choices).toHaveLength(1);
  expect(waiting.headers.get("x-sluice-queue-position")).toBe("1");
  expect(Number(waiting.headers.get("x-sluice-queue-wait-ms"))).toBeGreaterThan(0);
  const { code } = await errorOf(refused);
  expect([refused.status, code]).toEqual([503, "model_unavailable"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
});

/** Calls that hold a place and calls that wait for one. */
async function callsAtPools({ adminUrl }: TestGateway): Promise<number> {
  const metrics = await metricsOf(adminUrl);
  const counts = metrics.matchAll(/^sluice_pool_(?:in_flight|queued)\{pool="pool:.*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

test("the places of a key are free while a long burst of another key holds all others", async () => {
  await using gateway = await startGateway({
    simulator: { firstTokenDelayMs: 1_500 },
    sections: {
      models,
      pools: `
  shared: { tokens_per_minute: 1000000, unit_tokens_per_minute: 50000, max_in_flight: 20 }`,
      plans: `
  patient: { requests_per_minute: 1000, tokens_per_minute: 1000000, provisioned: true, queue_timeout: 1m }`,
    },
  });
  const buy = (account: string, provisionedUnits: number) =>
    gateway.createKey({ account, plan: "patient", provisionedUnits, provisionedPool: "shared" });
  const small = await buy("small", 1);
  const large = await buy("large", 10);
  const leaving = new AbortController();
  const { signal } = leaving;
  const burst = Array.from({ length: 60 }, () =>
    callWith(gateway, small.text, { tokens: 10, signal }).catch(() => undefined),
  );
  while ((await callsAtPools(gateway)) < burst.length) await Bun.sleep(20);
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => callWith(gateway, large.text, { tokens: 10 })),
  );
  for (const { status, headers } of answers) {
    expect([status, headers.get("x-sluice-queue-position")]).toEqual([200, null]);
  }
  leaving.abort();
  await Promise.all(burst);
});

test("a caller that leaves the queue makes room for the next, and is not charged", async () => {
  await using gateway = await startGateway({
    simulator: { firstTokenDelayMs: 200 },
    sections: {
      models,
      pools: pools(100_000, ", max_in_flight: 1"),
      plans: `
  patient: { requests_per_minute: 1000, tokens_per_minute: 1000000, queue_timeout: 10s }`,
    },
  });
  const { text: key } = await gateway.createKey({ plan: "patient" });
  const first = callWith(gateway, key);
  await Bun.sleep(50);
  const leaving = new AbortController();
  const left = gateway
    .post(
      "/v1/chat/completions",
      { model: "chat-model", messages: [{ role: "user", content: "echo: hi" }] },
      { headers: { authorization: `Bearer ${key}` }, signal: leaving.signal },
    )
    .catch(() => undefined);
  await Bun.sleep(50);
  leaving.abort();
  await left;
  expect((await chatOf(await first)).choices).toHaveLength(1);
  const after = await callWith(gateway, key);
  expect((await chatOf(after)).choices).toHaveLength(1);
  expect(gateway.simulator.truth.entries).toHaveLength(2);
  const abandoned = (await gateway.usage()).filter(({ outcome }) => outcome === "abandoned");
  expect(abandoned.map(({ inputTokens, attempts }) => [inputTokens, attempts])).toEqual([[0, 0]]);
});

test("an oversold pool is reported to the operator when the configuration is read", async () => {
  await using gateway = await startGateway({ sections });
  await gateway.createKey({ provisionedUnits: 50, provisionedPool: "shared" });
  expect(gateway.log.join("\n")).not.toContain("holds fewer units than are sold");
  await gateway.reconfigure({ pools: pools(10_000), models });
  expect(gateway.log.join("\n")).toContain("holds fewer units than are sold");
});
