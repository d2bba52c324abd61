import { expect, test } from "bun:test";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { sizeOf } from "../support/requirement.ts";

const limit = 20_000;
const overrunFactor = 3;
const minutes = sizeOf({ quick: 4, all: 15, measured: 60 });

const models = `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 4000
    targets: [{ model: simulated-chat, upstream: simulator }]`;

const custom = {
  plan: "enterprise",
  limits: { requestsPerMinute: 10_000, tokensPerMinute: limit },
};

const plans = (uncapped: string): string =>
  `{ enterprise: { custom: true, uncapped: ${uncapped}, overrun_factor: ${overrunFactor} } }`;

async function startWith(uncapped: string, clock = new ManualClock()): Promise<TestGateway> {
  const sections = { models, plans: plans(uncapped) };
  return startGateway({ key: custom, sections, overrides: { clock, random: () => 0 } });
}

const chat = (content: string, rest: object = {}) => ({
  model: "chat-model",
  messages: [{ role: "user", content }],
  ...rest,
});

const tokensOf = (rows: readonly UsageRecord[]): number =>
  rows.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0);

/** The most that was used in any 60 seconds, by when calls began. */
function worstMinute(rows: readonly UsageRecord[]): number {
  return Math.max(
    ...rows.map(({ startedAt: from }) =>
      tokensOf(rows.filter(({ startedAt }) => startedAt >= from && startedAt < from + 60_000)),
    ),
  );
}

/** A caller that wants everything, ignores `retry-after` and makes many calls at a time. */
async function hammer(gateway: TestGateway, clock: ManualClock, caps: readonly object[]) {
  let turn = 0;
  const statuses = new Set<number>();
  for (let second = 0; second < minutes * 60; second += 15) {
    const calls = Array.from({ length: 6 }, async () => {
      turn += 1;
      const n = (turn % 8) + 1;
      const body = chat("count: 3900", { n, stream: turn % 2 === 0, ...caps[turn % caps.length] });
      const response = await gateway.post("/v1/chat/completions", body);
      await response.text();
      statuses.add(response.status);
    });
    await Promise.all(calls);
    clock.advance(15_000);
  }
  expect([...statuses].toSorted((one, other) => one - other)).toEqual([200, 429]);
  return gateway.usage();
}

test("calls without a cap use at most their limit over time, and the limit's bound at once", async () => {
  const clock = new ManualClock();
  await using gateway = await startWith("debt", clock);
  const rows = await hammer(gateway, clock, [{}, {}, { max_tokens: 500 }]);
  expect(worstMinute(rows)).toBeGreaterThan(limit);
  expect(worstMinute(rows)).toBeLessThanOrEqual(limit + overrunFactor * limit);
  expect(tokensOf(rows)).toBeGreaterThan(minutes * limit * 0.7);
  expect(tokensOf(rows)).toBeLessThanOrEqual((minutes + 1 + overrunFactor) * limit);
}, 120_000);

test.each(["cap", "maximum"])(
  "under %s, calls without a cap never use more than the limit in any minute",
  async (uncapped) => {
    const clock = new ManualClock();
    await using gateway = await startWith(uncapped, clock);
    const rows = await hammer(gateway, clock, [{}, { max_tokens: 500 }]);
    expect(worstMinute(rows)).toBeLessThanOrEqual(limit);
    expect(tokensOf(rows)).toBeGreaterThan(minutes * limit * 0.5);
  },
  120_000,
);

test("thirty calls at once use at most the limit and its bound together", async () => {
  await using gateway = await startWith("debt");
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => gateway.post("/v1/chat/completions", chat("count: 3900"))),
  );
  await Promise.all(answers.map((answer) => answer.text()));
  expect(tokensOf(await gateway.usage())).toBeLessThanOrEqual(limit + overrunFactor * limit);
});

test("the refusal of a call that could exceed the bound alone names the field to set", async () => {
  await using gateway = await startWith("debt");
  const refused = await gateway.post("/v1/chat/completions", chat("count: 3", { n: 128 }));
  expect(refused.status).toBe(429);
  expect(refused.headers.get("x-should-retry")).toBe("false");
  expect((await errorOf(refused)).message).toContain("set `max_completion_tokens`");
  const capped = chat("count: 3", { n: 128, max_completion_tokens: 4 });
  const admitted = await gateway.post("/v1/chat/completions", capped);
  expect(admitted.status).toBe(200);
  await admitted.text();
});

test("a long answer ends at its reservation under `cap`", async () => {
  await using gateway = await startWith("cap");
  const response = await gateway.post("/v1/chat/completions", chat("count: 3900"));
  const { choices } = (await response.json()) as { choices: { finish_reason: string }[] };
  expect(choices.map(({ finish_reason: reason }) => reason)).toEqual(["length"]);
});
