import { expect, test } from "bun:test";
import { callOf, modelOf, targetOf } from "../../test/support/pipeline-fixtures.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { GatewayError } from "../domain/gateway-error.ts";
import type { UsageRecord } from "../domain/usage.ts";
import { createMemoryLimitStore } from "../storage/memory/limit-store.ts";
import { admit } from "./admit.ts";
import { TokenEstimator } from "./estimate.ts";
import { Meter } from "./meter.ts";

async function setUp() {
  const clock = new ManualClock();
  const records: UsageRecord[] = [];
  const options = { clock, random: () => 0, reservationTtlMs: 60_000, scopeLimit: 10 };
  const limits = createMemoryLimitStore(options);
  const model = modelOf();
  const call = callOf();
  const estimate = { inputTokens: 100, likelyInputTokens: 80, outputTokens: 50 };
  const meter = new Meter(
    {
      call,
      model,
      size: { textBytes: 300, attachmentTokens: 0 },
      output: { cap: 50, choices: 1 },
      estimate,
      isStreamed: true,
    },
    {
      clock,
      limits,
      estimator: new TokenEstimator({ defaultOutputTokens: 50, nowMs: 0 }),
      recordUsage: (record) => records.push(record),
      onSettleFailed: () => undefined,
    },
  );
  const admission = await admit({ call, resolved: { model }, estimate, isCapped: true }, limits);
  meter.admitted(admission);
  meter.attempting(targetOf("up"));
  const used = (): number =>
    1_000_000 - limits.peek({ id: "key:key_a", limits: call.caller.limits }).remainingTokens;
  return { meter, records, used, clock };
}

const usage = { inputTokens: 90, outputTokens: 7, cachedInputTokens: 5, reasoningTokens: 0 };
const unavailable = new GatewayError("model_unavailable", { message: "gone" });

test("an admitted call holds its reservation until it ends, then its actual tokens", async () => {
  const { meter, records, used } = await setUp();
  expect(used()).toBe(150);
  meter.reported(usage);
  meter.completed();
  expect(used()).toBe(97);
  expect(records[0]).toMatchObject({
    id: "req_1",
    outcome: "completed",
    status: 200,
    inputTokens: 90,
    outputTokens: 7,
    cachedInputTokens: 5,
    usageSource: "upstream",
    attempts: 1,
    target: "up/m",
  });
});

test("of several ends the first one counts, and it is accounted for once", async () => {
  const { meter, records, used } = await setUp();
  meter.reported(usage);
  meter.completed();
  meter.abandoned();
  meter.failed(unavailable);
  meter.completed();
  expect(records).toHaveLength(1);
  expect(records[0]?.outcome).toBe("completed");
  expect(used()).toBe(97);
});

test("a call that failed before any output gets its tokens back", async () => {
  const { meter, records, used } = await setUp();
  meter.failed(unavailable);
  expect(used()).toBe(0);
  expect(records[0]).toMatchObject({
    outcome: "failed",
    status: 503,
    code: "model_unavailable",
    inputTokens: 0,
    outputTokens: 0,
  });
});

test("a call that failed later pays for its input and what was delivered", async () => {
  const { meter, records, used } = await setUp();
  meter.delivering(4);
  meter.delivering(40);
  meter.failed(unavailable);
  expect(records[0]).toMatchObject({ inputTokens: 80, outputTokens: 11, usageSource: "estimated" });
  expect(used()).toBe(91);
});

test("a caller that leaves pays for its input and what was delivered", async () => {
  const { meter, records } = await setUp();
  for (let piece = 0; piece < 9; piece += 1) meter.delivering(2);
  meter.abandoned();
  expect(records[0]).toMatchObject({
    outcome: "abandoned",
    status: 499,
    inputTokens: 80,
    outputTokens: 9,
    usageSource: "estimated",
  });
});

test("a whole answer without counts is never free", async () => {
  const { meter, records } = await setUp();
  meter.delivering(100);
  meter.completed();
  expect(records[0]).toMatchObject({ inputTokens: 80, outputTokens: 25, usageSource: "estimated" });
});

test("times are measured from the arrival of the call", async () => {
  const { meter, records, clock } = await setUp();
  clock.advance(250);
  meter.answering();
  clock.advance(750);
  meter.answering();
  meter.completed();
  expect(records[0]).toMatchObject({ firstEventMs: 250, durationMs: 1_000 });
  expect(records[0]?.startedAt).toBe(clock.now() - 1_000);
});
