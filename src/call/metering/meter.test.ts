import { noLabels } from "../labels.ts";
import { expect, test } from "bun:test";
import { Calendar } from "../../domain/money/calendar.ts";
import { KeptLedger } from "../../../test/support/ledger-fixtures.ts";
import {
  callOf,
  modelOf,
  pipelineOf,
  plainPlan,
  plainWork,
} from "../../../test/support/pipeline-fixtures.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Model } from "../../domain/model.ts";
import type { PriceBook } from "../../domain/money/price.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { MemoryLimitStore } from "../../store/limits/memory/limit-store.ts";
import { admit } from "../../admission/admit.ts";
import { TokenEstimator } from "../../admission/estimate/estimate.ts";
import type { Call } from "../../snapshot/call.ts";
import { Meter } from "./meter.ts";
import { Attempt } from "../attempts/attempt.ts";
import { minuteScopes } from "../../domain/limits/limit-scope.ts";

/** Micro-USD per million tokens: in nano-USD a token, 2 in, 4 written for minutes, 10 out. */
const price = { input: 2_000, cache_read: 200, cache_write: 4_000, output: 10_000 };
const prices: PriceBook = {
  isPublished: () => true,
  find: (id) => (id === "up/m" ? { price, version: 3 } : undefined),
};

async function setUp({ takes = true, call = callOf({ receivedAt: 0 }) } = {}) {
  const clock = new ManualClock();
  const ended: UsageRecord[] = [];
  const ledger = new KeptLedger();
  const options = { clock, random: () => 0 };
  const limits = new MemoryLimitStore(options);
  const model = modelOf();
  const estimate = { inputTokens: 100, outputTokens: 50 };
  const meter = new Meter(
    {
      call,
      model,
      size: { textBytes: 300, attachmentTokens: 0 },
      output: { cap: 50, choices: 1 },
      estimate,
      inputs: 1,
      isStreamed: true,
      dialect: "messages",
      labels: noLabels,
    },
    {
      clock,
      limits,
      estimator: new TokenEstimator({ defaultOutputTokens: 50, nowMs: 0 }),
      ledger,
      prices,
      onCallEnded: (record) => ended.push(record),
      onSettleFailed: () => undefined,
    },
  );
  const request = { call, model, estimate, output: { cap: 0, choices: 1 }, ...plainWork };
  const admission = await admit(request, { limits, clock, prices, calendar: new Calendar() });
  ledger.takes = takes;
  const failure = await meter.admitted(admission);
  expect(failure?.message).toBe(takes ? undefined : "no room");
  if (takes) meter.path.began(attemptOf(meter, { call, model, clock }));
  const used = (): number =>
    1_000_000 - limits.peek(minuteScopes("key:key_a", call.caller.limits)).remainingTokens;
  return { meter, ledger, records: ledger.closed, ended, used, clock };
}

interface AttemptedCall {
  readonly call: Call;
  readonly model: Model;
  readonly clock: ManualClock;
}

function attemptOf(meter: Meter, { call, model, clock }: AttemptedCall): Attempt {
  const { services } = pipelineOf({ clock });
  const [target] = model.targets;
  const upstream = target && call.snapshot.upstreams.get(target.upstream);
  if (target === undefined || upstream === undefined) throw new Error("the model has a target");
  const ready = {
    why: "priority 1",
    isReady: true,
    isRefusing: false,
  };
  const candidate = { model, target, upstream, ...ready };
  const watch = services.health.tryBegin(target, { key: call.caller.key.id, isStreamed: false });
  if (watch === undefined) throw new Error("the target takes an attempt");
  const place = {
    waitedMs: 0,
    position: undefined,
    settle: () => undefined,
    leave: () => undefined,
    extend: (count: number) => count,
    tryOpen: () => true,
    whenOpen: () => Promise.resolve(true),
    close: () => undefined,
  };
  const admission = { outputCap: undefined };
  return new Attempt({ call, admission, meter, services }, { candidate, place, watch, number: 0 });
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

test("only the first of several ends counts", async () => {
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

test("a call that failed later pays for its input and the delivered output", async () => {
  const { meter, records, used } = await setUp();
  meter.delivering(4);
  meter.delivering(40);
  meter.failed(unavailable);
  expect(records[0]).toMatchObject({ inputTokens: 100, outputTokens: 11, usageSource: "counted" });
  expect(used()).toBe(111);
});

test("a caller that leaves pays for its input and the delivered output", async () => {
  const { meter, records } = await setUp();
  for (let piece = 0; piece < 9; piece += 1) meter.delivering(2);
  meter.abandoned();
  expect(records[0]).toMatchObject({
    outcome: "abandoned",
    status: 499,
    inputTokens: 100,
    outputTokens: 9,
    usageSource: "counted",
  });
});

test("a whole answer without counts is never free", async () => {
  const { meter, records } = await setUp();
  meter.delivering(100);
  meter.completed();
  expect(records[0]).toMatchObject({ inputTokens: 100, outputTokens: 25, usageSource: "counted" });
});

test("limits count a call by the weights of its plan, and its row has the tokens", async () => {
  const plan = {
    ...plainPlan,
    tokenWeights: { cachedInput: 0, cacheWrite: 125, output: 500 },
  };
  const plain = callOf({ receivedAt: 0 });
  const plans = new Map([[plain.caller.key.plan, plan]]);
  const call = { ...plain, snapshot: { ...plain.snapshot, plans } };
  const { meter, records, used, ledger } = await setUp({ call });
  expect(used()).toBe(100 * 1.25 + 50 * 5);
  expect(ledger.opened[0]).toMatchObject({
    reservedTokens: 150,
    weights: { input: 125, output: 500 },
  });
  for (let piece = 0; piece < 400; piece += 1) meter.delivering(4);
  // As far as the last update, of a stream without reports.
  expect(used()).toBe(100 * 1.25 + 306 * 5);
  meter.reported({ ...usage, outputTokens: 400, cachedInputTokens: 70, cacheWriteTokens: 12 });
  meter.completed();
  expect(used()).toBe(8 + 12 * 1.25 + 400 * 5);
  expect(records[0]).toMatchObject({ inputTokens: 90, outputTokens: 400, planTokens: 2_023 });
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

test("a call is opened in the ledger before its first attempt, with the data of its row", async () => {
  const { meter, ledger, clock } = await setUp();
  const { key } = callOf().caller;
  expect(ledger.opened).toEqual([
    {
      id: "req_1",
      reservedTokens: 150,
      costNano: 700,
      priceVersion: 3,
      startedAt: clock.now(),
      environment: "test",
      accountId: key.accountId,
      applicationId: key.applicationId,
      application: key.application,
      keyId: key.id,
      model: "alpha-sonnet-4",
      dialect: "messages",
      capacityClass: "on-demand",
      isStreamed: true,
      inputTokens: 100,
    },
  ]);
  meter.completed();
  // It was known before what it may cost, not what it does.
  const { weights, ...opened } = ledger.opened[0] ?? {};
  expect(weights).toBeUndefined();
  expect(ledger.closed[0]).toMatchObject({ ...opened, costNano: expect.any(Number) });
});

test("metrics and log get the same row as the ledger, once", async () => {
  const { meter, records, ended } = await setUp();
  meter.completed();
  meter.abandoned();
  expect(ended).toHaveLength(1);
  expect(ended[0]).toBe(records[0]);
});

test("a stream writes a checkpoint every thousand tokens and every five seconds", async () => {
  const { meter, ledger, clock } = await setUp();
  for (let piece = 0; piece < 2_500; piece += 1) meter.delivering(4);
  expect(ledger.checkpoints).toEqual([
    { callId: "req_1", outputTokens: 1_000 },
    { callId: "req_1", outputTokens: 2_000 },
  ]);
  clock.advance(4_999);
  meter.delivering(4);
  expect(ledger.checkpoints).toHaveLength(2);
  clock.advance(1);
  meter.delivering(4);
  expect(ledger.checkpoints.at(-1)).toEqual({ callId: "req_1", outputTokens: 2_502 });
});

test("a jump of the wall clock does not change the start of a call", async () => {
  const { meter, ledger, clock } = await setUp();
  clock.jumpWall(-3_600_000);
  clock.advance(100);
  meter.completed();
  expect(ledger.closed[0]?.startedAt).toBe(ledger.opened[0]?.startedAt);
  expect(ledger.closed[0]?.durationMs).toBe(100);
});

test("an empty answer counts as one token, unless the upstream reports none", async () => {
  const silent = await setUp();
  silent.meter.completed();
  expect(silent.records[0]).toMatchObject({ outputTokens: 1, usageSource: "estimated" });
  const told = await setUp();
  told.meter.reported({ ...usage, outputTokens: 0 });
  told.meter.completed();
  expect(told.records[0]).toMatchObject({ outputTokens: 0, usageSource: "upstream" });
});

test("a reported 0 for a prompt or a non-empty answer is ignored", async () => {
  const { meter, records, used } = await setUp();
  meter.delivering(40);
  meter.reported({ ...usage, inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 });
  meter.completed();
  expect(records[0]).toMatchObject({ inputTokens: 100, outputTokens: 10, usageSource: "counted" });
  expect(used()).toBe(110);
});

test("the larger counts of two reports on one answer are billed", async () => {
  const { meter, records } = await setUp();
  meter.reported(usage);
  meter.reported({ ...usage, inputTokens: 3, outputTokens: 9 });
  meter.completed();
  expect(records[0]).toMatchObject({ inputTokens: 90, outputTokens: 9, usageSource: "upstream" });
});

test("a caller that leaves is billed for the input as counted during the answer", async () => {
  const { meter, records } = await setUp();
  meter.reportedSoFar({ ...usage, inputTokens: 40, outputTokens: 1 });
  for (let piece = 0; piece < 9; piece += 1) meter.delivering(2);
  meter.abandoned();
  expect(records[0]).toMatchObject({ inputTokens: 40, outputTokens: 10, cachedInputTokens: 5 });
  expect(records[0]?.usageSource).toBe("counted");
});

test("cached tokens of an abandoned call never exceed its input", async () => {
  const { meter, records } = await setUp();
  const counts = { inputTokens: 40, outputTokens: 1, cachedInputTokens: 30, cacheWriteTokens: 70 };
  meter.reportedSoFar({ ...usage, ...counts });
  meter.delivering(2);
  meter.abandoned();
  expect(records[0]).toMatchObject({ cachedInputTokens: 30, cacheWriteTokens: 10 });
});

test("an answer that fails right after a usage report is billed as reported", async () => {
  const { meter, records } = await setUp();
  meter.delivering(400);
  meter.reportedSoFar({ ...usage, inputTokens: 40, outputTokens: 30 });
  meter.failed(unavailable);
  expect(records[0]).toMatchObject({ inputTokens: 40, outputTokens: 30, usageSource: "upstream" });
});

test("an abandoned call pays at least the reported usage of its choices", async () => {
  const few = await setUp();
  few.meter.reportedPart({ ...usage, inputTokens: 60, outputTokens: 40 });
  few.meter.delivering(2);
  few.meter.abandoned();
  expect(few.records[0]).toMatchObject({ inputTokens: 100, outputTokens: 40 });
  const many = await setUp();
  many.meter.reportedPart({ ...usage, inputTokens: 160, outputTokens: 40 });
  many.meter.failed(unavailable);
  expect(many.records[0]).toMatchObject({
    inputTokens: 160,
    outputTokens: 40,
    usageSource: "upstream",
  });
});

test("an input counted before admission is billed if there is no other report", async () => {
  const { meter, records } = await setUp();
  meter.inputCounted(33);
  meter.delivering(4);
  meter.abandoned();
  expect(records[0]).toMatchObject({ inputTokens: 33, outputTokens: 1 });
});

test("a call that the ledger refuses gets its tokens back", async () => {
  const { meter, records, used } = await setUp({ takes: false });
  meter.failed(unavailable);
  expect(used()).toBe(0);
  expect(records[0]).toMatchObject({ status: 503, inputTokens: 0, outputTokens: 0, attempts: 0 });
});

test("a call costs what it used, and an open one what it reserved", async () => {
  const { meter, records, ledger } = await setUp();
  expect(ledger.opened[0]).toMatchObject({ costNano: 100 * 2 + 50 * 10, priceVersion: 3 });
  meter.reported({ ...usage, cacheWriteTokens: 10 });
  meter.completed();
  const fresh = usage.inputTokens - usage.cachedInputTokens - 10;
  const costNano = fresh * 2 + usage.cachedInputTokens * 0.2 + 10 * 4 + usage.outputTokens * 10;
  expect(records[0]).toMatchObject({ costNano, priceVersion: 3 });
});

test("a call whose cache writes have no price has no cost, which is not 0", async () => {
  const { meter, records } = await setUp();
  meter.reported({ ...usage, cacheWriteTokens: 10, cacheWrite1hTokens: 1 });
  meter.completed();
  expect(records[0]?.cacheWrite1hTokens).toBe(1);
  expect(records[0]?.costNano).toBeUndefined();
  expect(records[0]?.priceVersion).toBeUndefined();
});

test("a tier without prices has no cost, and the usual one does not count as a tier", async () => {
  const other = await setUp();
  other.meter.reported({ ...usage, serviceTier: "priority" });
  other.meter.completed();
  expect(other.records[0]).toMatchObject({ serviceTier: "priority", costNano: undefined });
  const usual = await setUp();
  usual.meter.reported({ ...usage, serviceTier: "default" });
  usual.meter.completed();
  expect(usual.records[0]?.costNano).toBe(85 * 2 + 5 * 0.2 + 7 * 10);
});

test("a failed call costs nothing, and a caller that leaves what was delivered", async () => {
  const failed = await setUp();
  failed.meter.failed(unavailable);
  expect(failed.records[0]).toMatchObject({ costNano: 0, priceVersion: undefined });
  const left = await setUp();
  left.meter.reportedSoFar({ ...usage, outputTokens: 0 });
  left.meter.delivering(40);
  left.meter.abandoned();
  expect(left.records[0]?.costNano).toBe(85 * 2 + 5 * 0.2 + 10 * 10);
});
