import { describe, expect, test } from "bun:test";
import { explanationSchema, refusalsSchema } from "../../src/control/contract/refusals.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { metricsOf } from "../support/metrics-of.ts";
import { describeWithValkey, valkeyOfTests } from "../support/valkey-server.ts";

const header = "x-sluice-would-refuse";

interface Answer {
  readonly status: number;
  readonly wouldRefuse: string | null;
  readonly id: string;
  readonly text: string;
}

async function ask(gateway: TestGateway, rest: object = {}, key?: string): Promise<Answer> {
  const body = {
    model: "chat-model",
    messages: [{ role: "user", content: "echo: hi" }],
    max_tokens: 5,
    ...rest,
  };
  const headers: Record<string, string> =
    key === undefined ? {} : { authorization: `Bearer ${key}` };
  const response = await gateway.post("/v1/chat/completions", body, { headers });
  const text = await response.text();
  const { status } = response;
  const id = response.headers.get("x-request-id") ?? "";
  expect(Number(response.headers.get("x-ratelimit-remaining-requests"))).toBeGreaterThanOrEqual(0);
  return { status, wouldRefuse: response.headers.get(header), id, text };
}

function start(plan: string, more: Partial<Parameters<typeof startGateway>[0]> = {}) {
  return startGateway({
    key: { plan: "standard" },
    ...more,
    sections: { plans: `{ standard: { ${plan} } }`, ...more.sections },
  });
}

async function explain(gateway: TestGateway, id: string) {
  const response = await gateway.admin("GET", `/admin/v1/explain/${id}`);
  return explanationSchema.parse(await response.json());
}

const few = "requests_per_minute: 3, tokens_per_minute: 1000";

test("nothing is refused by requests, and each answer over the limit says so", async () => {
  await using gateway = await start(`mode: audit, ${few}`);
  const answers: Answer[] = [];
  for (let call = 0; call < 6; call += 1) answers.push(await ask(gateway));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
  const none = Array.from({ length: 3 }, () => null);
  const told = Array.from({ length: 3 }, () => "requests");
  expect(answers.map(({ wouldRefuse }) => wouldRefuse)).toEqual([...none, ...told]);
  await gateway.usage();
  const { call, refusal } = await explain(gateway, answers[5]?.id ?? "");
  expect(call).toMatchObject({ outcome: "completed", status: 200 });
  expect(refusal).toMatchObject({
    is_audited: true,
    rule: "requests_per_minute",
    plan: "standard",
    status: 429,
    caller_status: 200,
    window: { limit: 3, used: 5, requested: 1 },
  });
  const used = await gateway.get("/v1/usage");
  expect(await used.json()).toMatchObject({
    limits: [{ requests: { limit: 3, used: 6, remaining: 0 } }],
  });
  const first = await explain(gateway, answers[0]?.id ?? "");
  expect(first.refusal).toBeNull();
  const metrics = await metricsOf(gateway.adminUrl);
  const series = 'sluice_audited_refusals_total{plan="standard",rule="requests_per_minute"}';
  expect(metrics).toContain(`${series} 3\n`);
  expect(metrics).not.toMatch(/sluice_refusals_total\{rule="requests_per_minute"\} [1-9]/);
});

test("nothing is refused by tokens, not even what is larger than the limit", async () => {
  await using gateway = await start(
    `mode: audit, requests_per_minute: 100, tokens_per_minute: 300`,
  );
  const large = await ask(gateway, { max_tokens: 2_000 });
  expect(large).toMatchObject({ status: 200, wouldRefuse: "tokens" });
  expect((await explain(gateway, large.id)).refusal).toMatchObject({ rule: "request_too_large" });
  const streamed = await ask(gateway, {
    messages: [{ role: "user", content: "count: 290" }],
    stream: true,
    max_tokens: 290,
  });
  expect(streamed).toMatchObject({ status: 200, wouldRefuse: "tokens" });
  const small = await ask(gateway, { max_tokens: 200 });
  expect(small).toMatchObject({ status: 200, wouldRefuse: "tokens" });
  expect((await explain(gateway, small.id)).refusal).toMatchObject({ rule: "tokens_per_minute" });
});

test("calls without a cap are neither refused nor cut", async () => {
  const long = { messages: [{ role: "user", content: "count: 400" }], max_tokens: undefined };
  const limits = "requests_per_minute: 100, tokens_per_minute: 100";
  await using cutting = await start(`mode: audit, ${limits}, uncapped: cap`);
  const whole = await ask(cutting, long);
  expect(whole.status).toBe(200);
  expect(JSON.parse(whole.text)).toMatchObject({ choices: [{ finish_reason: "stop" }] });
  await using owing = await start(`mode: audit, ${limits}, overrun_factor: 0`);
  const owed = await ask(owing, long);
  expect(owed).toMatchObject({ status: 200, wouldRefuse: "tokens" });
  expect((await explain(owing, owed.id)).refusal).toMatchObject({ rule: "uncapped_output" });
});

test("lists of models are not refused either", async () => {
  await using gateway = await start(`mode: audit, ${few}`);
  for (const expected of [null, null, null, "requests"]) {
    const response = await gateway.get("/v1/models");
    expect(response.status).toBe(200);
    expect(response.headers.get(header)).toBe(expected);
    await response.text();
  }
});

test("limits of the account still refuse", async () => {
  await using gateway = await start(`mode: audit, ${few}`);
  const rows = (await (await gateway.admin("GET", "/admin/v1/accounts")).json()) as {
    data: { id: string; revision: number }[];
  };
  const [account] = rows.data;
  const limits = { requests_per_minute: 5, tokens_per_minute: 1_000_000 };
  const change = { revision: account?.revision, limits };
  const set = await gateway.admin("PATCH", `/admin/v1/accounts/${account?.id}`, change);
  await set.text();
  expect(set.status).toBe(200);
  const statuses: number[] = [];
  for (let call = 0; call < 8; call += 1) statuses.push((await ask(gateway)).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
});

test("a key that was far over its limit is not locked when the plan enforces it", async () => {
  await expectNotLocked({});
});

async function expectNotLocked(sections: Readonly<Record<string, string>>): Promise<void> {
  const limits = "requests_per_minute: 100, tokens_per_minute: 500";
  await using gateway = await start(`mode: audit, ${limits}`, { sections });
  const long = { messages: [{ role: "user", content: "count: 3000" }], max_tokens: 3_000 };
  for (let call = 0; call < 5; call += 1) expect((await ask(gateway, long)).status).toBe(200);
  const enforced = { plans: `{ standard: { ${limits} } }` };
  await gateway.reconfigure(enforced);
  const next = await ask(gateway, { max_tokens: 300 });
  expect(next).toMatchObject({ status: 200, wouldRefuse: null });
  const over = await ask(gateway, { max_tokens: 490 });
  expect(over.status).toBe(429);
  // And what is owed under the limit stays owed.
  await gateway.reconfigure({ plans: `{ standard: { ${limits}, mode: audit } }` });
  expect((await ask(gateway, { max_tokens: 490 })).status).toBe(200);
  await gateway.reconfigure(enforced);
  expect((await ask(gateway, { max_tokens: 490 })).status).toBe(429);
}

describe("with provisioned throughput", () => {
  test("only calls beyond the guarantee are told", async () => {
    await using gateway = await startGateway({
      sections: {
        pools:
          "{ main: { kind: shared, tokens_per_minute: 100000, unit_tokens_per_minute: 1000 } }",
        models: `
  chat-model:
    kind: chat
    context_window: 1000
    max_output_tokens: 900
    targets: [{ upstream: simulator, model: simulated-chat, pool: main }]`,
        plans: "{ pro: { mode: audit, requests_per_minute: 1, tokens_per_minute: 1000 } }",
      },
      key: { plan: "pro", provisionedUnits: 1, provisionedPool: "main" },
    });
    const within: (string | null)[] = [];
    for (let call = 0; call < 3; call += 1) {
      within.push((await ask(gateway, { max_tokens: 10 })).wouldRefuse);
    }
    expect(within).toEqual([null, null, null]);
    const beyond: (string | null)[] = [];
    for (let call = 0; call < 3; call += 1) {
      const response = await gateway.post(
        "/v1/chat/completions",
        { model: "chat-model", messages: [{ role: "user", content: "echo: hi" }], max_tokens: 10 },
        { headers: { "x-sluice-capacity": "on-demand-only" } },
      );
      await response.text();
      expect(response.status).toBe(200);
      beyond.push(response.headers.get(header));
    }
    expect(beyond).toEqual([null, "requests", "requests"]);
  });
});

describeWithValkey(() => {
  const valkey = valkeyOfTests();

  test("two processes count together what they would refuse, with leases", async () => {
    await using gateway = await start(
      `mode: audit, requests_per_minute: 40, tokens_per_minute: 100000`,
      {
        processes: 2,
        sections: { limits: `{ store: "${valkey.server.url}", timeout: 5s }` },
      },
    );
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(gateway)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    const told = answers.filter(({ wouldRefuse }) => wouldRefuse === "requests");
    // Near the limit, what others have leased counts as used, as it does for limits that refuse.
    expect(told.length).toBeGreaterThanOrEqual(60);
    const listed = await gateway.admin("GET", "/admin/v1/refusals?limit=500");
    const { data } = refusalsSchema.parse(await listed.json());
    expect(data.length).toBeGreaterThan(0);
    for (const refusal of data) {
      expect(refusal).toMatchObject({ is_audited: true, rule: "requests_per_minute" });
    }
  });

  test("nor is a key locked whose limits are in a server", async () => {
    await expectNotLocked({ limits: `{ store: "${valkey.server.url}", timeout: 5s }` });
  });

  test("a plan that would be closed without the server serves while it is in audit", async () => {
    await using gateway = await start(`mode: audit, ${few}, when_limits_unavailable: closed`, {
      sections: { limits: `{ store: "valkey://127.0.0.1:1" }` },
    });
    expect((await ask(gateway)).status).toBe(200);
  });
});
