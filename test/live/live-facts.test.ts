import { expect, test } from "bun:test";
import type { z } from "zod";
import { keyLiveSchema, overviewSchema, targetsSchema } from "../../src/control/contract/live.ts";
import { refusalsSchema } from "../../src/control/contract/refusals.ts";
import { chatOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/ledger-truth-process.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { describeWithValkey, startValkey } from "../support/valkey-server.ts";

const ask = (model: string, fields: object = {}) => ({
  model,
  messages: [{ role: "user", content: "Hello" }],
  ...fields,
});

async function read<Schema extends z.ZodType>(
  gateway: TestGateway,
  path: string,
  schema: Schema,
): Promise<z.output<Schema>> {
  const response = await gateway.admin("GET", `/admin/v1${path}`);
  const text = await response.text();
  expect([response.status, text]).toEqual([200, text]);
  return schema.parse(JSON.parse(text));
}

const targetsOf = (gateway: TestGateway) => read(gateway, "/targets", targetsSchema);
const liveOf = (gateway: TestGateway, key: string) =>
  read(gateway, `/keys/${key}/live`, keyLiveSchema);

async function change(
  gateway: TestGateway,
  method: string,
  path: string,
  body: object,
): Promise<void> {
  const response = await gateway.admin(method, `/admin/v1${path}`, body);
  expect([response.status, response.ok ? "" : await response.text()]).toEqual([
    method === "POST" ? 201 : 200,
    "",
  ]);
}

const sections = {
  routing: "{ attempts: 1, out: { failures: 3, first: 20s, longest: 60s } }",
  models: `
  sound:
    kind: chat
    context_window: 200000
    targets: [{ model: sound, upstream: simulator }]
  broken:
    kind: chat
    context_window: 200000
    targets: [{ model: fault-error-500, upstream: simulator, pool: main, weight: 3 }]
  slow:
    kind: chat
    context_window: 200000
    targets: [{ model: fault-slow-first-byte-60000, upstream: simulator, pool: main }]`,
  pools: "{ main: { tokens_per_minute: 1000000, max_in_flight: 7 } }",
};

test("targets tell what they did, which is out, until when and why", async () => {
  await using gateway = await startGateway({ sections });
  const before = await targetsOf(gateway);
  expect(before.data.map(({ state, calls }) => [state, calls])).toEqual([
    ["in_service", 0],
    ["in_service", 0],
    ["in_service", 0],
  ]);
  for (let count = 0; count < 3; count += 1) {
    expect((await gateway.post("/v1/chat/completions", ask("sound"))).status).toBe(200);
  }
  // Three accounts, because no account alone takes a target out for the others.
  for (const account of ["one", "two", "three"]) {
    const { text } = await gateway.createKey({ account });
    const headers = { authorization: `Bearer ${text}` };
    const response = await gateway.post("/v1/chat/completions", ask("broken"), { headers });
    expect(response.status).toBe(503);
    await response.text();
  }
  await gateway.usage();
  const after = await targetsOf(gateway);
  const byModel = new Map(after.data.map((target) => [target.models[0]?.alias, target]));
  expect(byModel.get("sound")).toMatchObject({
    state: "in_service",
    calls: 3,
    share: 0.5,
    why: null,
    first_event_ms: { p50: expect.any(Number), p95: expect.any(Number) },
  });
  const broken = byModel.get("broken");
  expect(broken).toMatchObject({
    id: "simulator/fault-error-500",
    state: "failing",
    failed_calls: 3,
    processes_out: 1,
    pool: "main",
    models: [{ environment: "test", alias: "broken", weight: 3 }],
  });
  expect(broken?.why).toContain("3 failures in a row");
  expect(Date.parse(broken?.out_until ?? "")).toBeGreaterThan(Date.now());
  const { needs } = await read(gateway, "/overview", overviewSchema);
  expect(needs).toMatchObject([
    {
      kind: "target_failing",
      severity: "bad",
      what: broken?.why ?? "",
      at: broken?.out_until ?? "",
    },
  ]);
});

test("a target is failing while all that calls it fails, although it is out for these keys alone", async () => {
  await using gateway = await startGateway({ sections });
  const { text } = await gateway.createKey({ account: "only" });
  const headers = { authorization: `Bearer ${text}` };
  for (let count = 0; count < 3; count += 1) {
    const response = await gateway.post("/v1/chat/completions", ask("broken"), { headers });
    expect(response.status).toBe(503);
    await response.text();
  }
  const [worst, ...others] = (await targetsOf(gateway)).data;
  expect(worst).toMatchObject({
    id: "simulator/fault-error-500",
    state: "failing",
    why: expect.stringMatching(
      /^3 failures in a row, at last: unavailable; it is tried all the same, as nothing else serves broken$/,
    ),
    processes_out: 0,
    keys_out: 1,
  });
  expect(others.map(({ state }) => state)).toEqual(["in_service", "in_service"]);
  const { needs } = await read(gateway, "/overview", overviewSchema);
  expect(needs).toMatchObject([
    { kind: "target_failing", severity: "bad", what: worst?.why ?? "", at: null },
  ]);
});

test("a target whose failed attempts others served tells of them by kind, and of the last one", async () => {
  const served = `
  served:
    kind: chat
    context_window: 200000
    targets:
      - { model: fault-error-500, upstream: simulator, priority: 1 }
      - { model: sound, upstream: simulator, priority: 2 }`;
  const routing = "{ attempts: 2 }";
  await using gateway = await startGateway({ sections: { routing, models: served } });
  for (let count = 0; count < 3; count += 1) {
    const response = await gateway.post("/v1/chat/completions", ask("served"));
    expect(response.status).toBe(200);
    await response.text();
  }
  await gateway.usage();
  const { data, since } = await targetsOf(gateway);
  const byId = new Map(data.map((target) => [target.id, target]));
  const { at = "" } = byId.get("simulator/fault-error-500")?.last_failure ?? {};
  expect(Date.parse(at)).toBeGreaterThan(Date.parse(since));
  expect(byId.get("simulator/fault-error-500")).toMatchObject({
    calls: 0,
    failed_calls: 0,
    attempts: 3,
    failures: { unavailable: 3 },
    last_failure: { kind: "unavailable", at },
  });
  expect(byId.get("simulator/sound")).toMatchObject({
    calls: 3,
    attempts: 3,
    failures: {},
    last_failure: null,
  });
});

test("gates and processes tell what is under way", async () => {
  await using gateway = await startGateway({ sections });
  const leaving = new AbortController();
  const { signal } = leaving;
  const call = gateway.post("/v1/chat/completions", ask("slow"), { signal }).catch(() => undefined);
  await until("the call is under way", async () => {
    const { gates } = await targetsOf(gateway);
    return gates.some(({ in_flight: calls }) => calls > 0);
  });
  const { gates, processes, data, machine } = await targetsOf(gateway);
  expect(gates).toMatchObject([
    { kind: "pool", name: "main", in_flight: 1, waiting: 0, bound: 7 },
    { kind: "upstream", name: "simulator", in_flight: 1 },
    { kind: "upstream", name: "embeddings", in_flight: 0 },
  ]);
  expect(processes).toMatchObject([{ process: 1, open_calls: 1 }]);
  expect(data.filter(({ in_flight: attempts }) => attempts === 1)).toHaveLength(1);
  expect(machine).not.toBe("");
  leaving.abort();
  await call;
});

test("a caller that left is no failure of its target, and a call that no target got is in no share", async () => {
  const pools = "{ main: { tokens_per_minute: 1000000, max_in_flight: 1 } }";
  await using gateway = await startGateway({ sections: { ...sections, pools } });
  const sound = await gateway.post("/v1/chat/completions", ask("sound"));
  expect(sound.status).toBe(200);
  await sound.text();
  const leaving = new AbortController();
  const { signal } = leaving;
  const call = gateway.post("/v1/chat/completions", ask("slow"), { signal }).catch(() => undefined);
  await until("the call is under way", async () => {
    return (await targetsOf(gateway)).gates.some(({ in_flight: calls }) => calls > 0);
  });
  const busy = await gateway.post("/v1/chat/completions", ask("slow"));
  expect(busy.status).toBe(503);
  await busy.text();
  leaving.abort();
  await call;
  await until("all calls are known", async () => {
    const { sums } = await read(gateway, "/overview", overviewSchema);
    return sums?.calls === 3;
  });
  const { data } = await targetsOf(gateway);
  expect(
    data.map(({ id, calls, failed_calls: failed, share }) => [id, calls, failed, share]),
  ).toEqual([
    ["simulator/sound", 1, 0, 0.5],
    ["simulator/fault-error-500", 0, 0, 0],
    ["simulator/fault-slow-first-byte-60000", 1, 0, 0.5],
  ]);
});

test("a key with an open call is told of, however long ago the call began", async () => {
  const clock = new ManualClock();
  await using gateway = await startGateway({ sections, overrides: { clock } });
  const { id, text } = await gateway.createKey({ account: "patient" });
  const leaving = new AbortController();
  const init = { signal: leaving.signal, headers: { authorization: `Bearer ${text}` } };
  const call = gateway.post("/v1/chat/completions", ask("slow"), init).catch(() => undefined);
  await until("the call is under way", async () => {
    const { keys } = await read(gateway, "/overview", overviewSchema);
    return keys.some(({ key_id: key, open_calls: open }) => key === id && open === 1);
  });
  clock.advance(10 * 60_000);
  const { keys } = await read(gateway, "/overview", overviewSchema);
  expect(keys).toMatchObject([{ key_id: id, open_calls: 1, requests: { used: 0 } }]);
  leaving.abort();
  await call;
});

test("a key's use is that of its window, and says whose limit leaves least", async () => {
  const limits = { requestsPerMinute: 100, tokensPerMinute: 100_000 };
  await using gateway = await startGateway();
  const { id, text } = await gateway.createKey({ limits, account: "shop" });
  const unused = await liveOf(gateway, id);
  expect(unused.use).toMatchObject({
    requests: { limit: 100, used: 0, remaining: 100, free_at: null, set_by: "key" },
    tokens: { limit: 100_000, used: 0 },
    guarantee: null,
    open_calls: 0,
  });
  const headers = { authorization: `Bearer ${text}` };
  const response = await gateway.post("/v1/chat/completions", ask("chat-model"), { headers });
  const { usage } = await chatOf(response);
  const tokens = usage?.total_tokens ?? 0;
  expect(tokens).toBeGreaterThan(0);
  const { use } = await liveOf(gateway, id);
  expect(use).toMatchObject({
    requests: { used: 1, remaining: 99 },
    tokens: { used: tokens, remaining: 100_000 - tokens },
  });
  expect(Date.parse(use?.tokens.free_at ?? "")).toBeGreaterThan(Date.now());
  const accounts = (await (await gateway.admin("GET", "/admin/v1/accounts?name=shop")).json()) as {
    data: { id: string; revision: number }[];
  };
  const [account] = accounts.data;
  await change(gateway, "PATCH", `/accounts/${account?.id}`, {
    revision: account?.revision,
    limits: { requests_per_minute: 1000, tokens_per_minute: 2_000 },
  });
  expect((await liveOf(gateway, id)).use).toMatchObject({
    requests: { limit: 100, set_by: "key" },
    tokens: { limit: 2_000, set_by: "account" },
  });
});

test("a limit of a plan is told by the plan's name, live, as a need and in a refusal", async () => {
  const plans = "{ tiny: { requests_per_minute: 1, tokens_per_minute: 1000000 } }";
  await using gateway = await startGateway({ sections: { plans }, key: { plan: "tiny" } });
  for (const status of [200, 429]) {
    const response = await gateway.post("/v1/chat/completions", ask("chat-model"));
    expect([response.status, (await response.text()) === ""]).toEqual([status, false]);
  }
  const { needs, keys } = await read(gateway, "/overview", overviewSchema);
  expect(keys).toMatchObject([{ plan: "tiny", requests: { used: 1, set_by: "plan" } }]);
  expect(needs[0]?.what).toBe("It uses 100 % of the 1 requests a minute of plan tiny.");
  const { data } = await read(gateway, "/refusals", refusalsSchema);
  expect(data).toMatchObject([{ rule: "requests_per_minute", plan: "tiny" }]);
});

test("a guarantee is told with the length of its window", async () => {
  const pools = "{ main: { tokens_per_minute: 1000000, unit_tokens_per_minute: 10000 } }";
  await using gateway = await startGateway({ sections: { ...sections, pools } });
  const { id } = await gateway.createKey({ provisionedUnits: 2, provisionedPool: "main" });
  const { use } = await liveOf(gateway, id);
  const { guarantee } = use ?? {};
  expect(guarantee?.seconds).toBeGreaterThanOrEqual(60);
  expect(guarantee?.limit).toBe((20_000 * (guarantee?.seconds ?? 0)) / 60);
  expect(guarantee).toMatchObject({ used: 0, free_at: null });
});

describeWithValkey(() => {
  test("several processes tell the use that they share, each of its own health", async () => {
    await using server = await startValkey();
    await using gateway = await startGateway({
      processes: 2,
      sections: {
        ...sections,
        limits: `{ store: "${server.url}", timeout: 5s }`,
        plans: "{ enterprise: { custom: true } }",
      },
    });
    const limits = { requestsPerMinute: 10, tokensPerMinute: 1_000_000 };
    const { id, text } = await gateway.createKey({ limits, account: "shop" });
    const headers = { authorization: `Bearer ${text}` };
    // Calls go to both processes in turn.
    for (let count = 0; count < 10; count += 1) {
      const response = await gateway.post("/v1/chat/completions", ask("sound"), { headers });
      expect(response.status).toBe(200);
      await response.text();
    }
    await until("the server knows all of it", async () => {
      const { use } = await liveOf(gateway, id);
      return use?.requests.used === 10 && use.requests.remaining === 0;
    });
    const targets = await targetsOf(gateway);
    expect(targets.processes.map(({ process }) => process)).toEqual([1, 2]);
    const { needs, keys } = await read(gateway, "/overview", overviewSchema);
    expect(keys[0]).toMatchObject({ key_id: id, used_percent: 100 });
    expect(needs.find(({ kind }) => kind === "key_near_limit")).toMatchObject({
      subject: { type: "key", id },
      what: "It uses 100 % of the 10 requests a minute of the key itself.",
    });
    await server.kill();
    // Each process has counted its own calls, and the one that leads tells of them.
    const alone = (await liveOf(gateway, id)).use?.requests.used ?? 0;
    expect(alone).toBeGreaterThan(0);
    expect(alone).toBeLessThan(10);
  });
});

interface Issued {
  readonly key: { readonly id: string; readonly secrets: readonly { readonly hint: string }[] };
  readonly api_key: string;
}

test("the overview lists what needs somebody, the worst first, to each account its own", async () => {
  await using gateway = await startGateway();
  const mine = await gateway.createKey({ account: "mine", limits: tight });
  const theirs = await gateway.createKey({ account: "theirs", limits: tight });
  for (const { id, text } of [mine, theirs]) {
    const headers = { authorization: `Bearer ${text}` };
    for (let count = 0; count < 3; count += 1) {
      await (await gateway.post("/v1/chat/completions", ask("chat-model"), { headers })).text();
    }
    await change(gateway, "PATCH", `/keys/${id}`, { revision: 1, expires_in_seconds: 3600 });
    const rotated = await gateway.admin("POST", `/admin/v1/keys/${id}/rotate`, {});
    const { api_key: leaked } = (await rotated.json()) as Issued;
    const report = await gateway.admin("POST", "/admin/v1/leaks", { api_keys: [leaked] });
    expect(report.status).toBe(200);
  }
  await gateway.usage();
  const all = await read(gateway, "/overview", overviewSchema);
  expect(all.hours).toHaveLength(25);
  expect(all.hours[0]).toMatchObject({ at: all.since, calls: 0 });
  const callsOfHours = all.hours.reduce((sum, { calls }) => sum + calls, 0);
  expect([callsOfHours, all.sums?.calls]).toEqual([all.sums?.calls ?? 0, callsOfHours]);
  expect(callsOfHours).toBeGreaterThan(0);
  expect(all.needs.map(({ kind }) => kind)).toEqual([
    "key_near_limit",
    "key_near_limit",
    "key_expires",
    "key_expires",
    "key_leaked",
    "key_leaked",
  ]);
  expect(all.keys.map(({ key_id: id }) => id).toSorted()).toEqual([mine.id, theirs.id].toSorted());
});

const tight = { requestsPerMinute: 3, tokensPerMinute: 1_000_000 };
