import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import type { BudgetScope } from "../../src/domain/money/budget.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { openChatStream, runChat } from "../../src/call/chat/chat-call.ts";
import { nextOf } from "../../src/domain/waiting/flow.ts";
import type { CallServices } from "../../src/call/services.ts";
import {
  adapterOf,
  callerOf,
  callOf,
  modelOf,
  pipelineOf,
  snapshotOf,
  targetOf,
  upstreamOf,
} from "../support/pipeline-fixtures.ts";
import { ScriptedUpstream } from "../support/scripted-upstream.ts";
import { runsOf } from "../support/requirement.ts";
import { readChatRequest } from "../../src/wires/chat/read-request.ts";

/** The billing of calls for any counts of upstreams and any moment at which callers leave. */

const bodyBytes = 3_000;
const reservedInput = 1_000;
const usageTimeoutMs = 100;

let upstream: ScriptedUpstream;
beforeAll(() => {
  upstream = new ScriptedUpstream();
});
afterAll(async () => {
  await upstream.stop();
});

/** A count of an upstream: correct, wrong or missing. */
const count = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 5_000 }) },
  { weight: 2, arbitrary: fc.constantFrom(0, -5, null, "many", 1e300, 2 ** 30) },
);
const action = fc.oneof(
  fc.record({ type: fc.constant("text" as const), length: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ type: fc.constant("usage" as const), input: count, output: count }),
  fc.constant({ type: "finish" as const }),
);
type Action = typeof action extends fc.Arbitrary<infer Value> ? Value : never;

const script = fc.record({
  choices: fc.constantFrom(1, 1, 3),
  actions: fc.array(action, { maxLength: 8 }),
  /** The number of actions after which the caller leaves. */
  leavesAfter: fc.nat({ max: 9 }),
});
type Script = typeof script extends fc.Arbitrary<infer Value> ? Value : never;

function countOf(value: unknown): number {
  return typeof value === "number" && value > 0 && value <= 2 ** 40 ? value : 0;
}

/** Plays a script and returns what the upstream sent while it was read. */
async function play({ choices, actions, leavesAfter }: Script) {
  const model = modelOf({ targets: [targetOf("up")] });
  const snapshot = snapshotOf([upstreamOf("up", { adapter: adapterOf(upstream.url) })]);
  const caller = new AbortController();
  const call = callOf({
    environment: { name: "test", models: new Map([[model.alias, model]]) },
    snapshot: { ...snapshot, settings: { ...snapshot.settings, usageTimeoutMs } },
    signal: caller.signal,
  });
  const { services, records } = pipelineOf();
  const messages = [{ role: "user" as const, content: "hi" }];
  const request = readChatRequest({ model: model.alias, messages, stream: true, n: choices });
  const { answer } = await openChatStream(call, { request, bodyBytes }, services);
  await nextOf(answer);
  const stream = upstream.last;
  const reported = { input: 0, output: 0 };
  let finished = 0;
  let delivered = 1;
  const send = (each: Action): void => {
    if (each.type === "text") stream.text("x".repeat(each.length));
    if (each.type === "finish") stream.finish(finished);
    if (each.type === "finish") finished += 1;
    if (each.type !== "usage") return;
    stream.usage(each.input, each.output);
    reported.input = Math.max(reported.input, countOf(each.input));
    reported.output = Math.max(reported.output, countOf(each.output));
  };
  const isHeard = ({ type, ...counts }: Action): boolean =>
    type !== "usage" || Object.values(counts).some((value) => countOf(value) > 0 || value === 0);
  for (const each of actions.slice(0, leavesAfter)) {
    if (each.type === "finish" && finished >= choices) continue;
    send(each);
    if (isHeard(each)) await nextOf(answer);
    if (each.type === "text") delivered += 1;
  }
  const isWhole = finished >= choices;
  caller.abort();
  answer.cancel();
  // Only a finished answer is read on, for its count.
  const later = actions.slice(leavesAfter).filter(({ type }) => type === "usage");
  const [first] = later.filter(isHeard);
  if (isWhole && records.length === 0 && first !== undefined) send(first);
  const deadline = performance.now() + 10_000;
  while (records.length === 0 && performance.now() < deadline) await Bun.sleep(1);
  return { row: records[0], rows: records.length, reported, delivered };
}

test("no row is below the upstream's possible count, or below the reservation if there is none", async () => {
  const property = fc.asyncProperty(script, async (played) => {
    const { row, rows, reported, delivered } = await play(played);
    expect(rows).toBe(1);
    const most = played.choices * modelOf().contextWindow;
    expect(row?.outputTokens).toBeGreaterThanOrEqual(
      reported.output > 0 ? Math.min(most, reported.output) : delivered,
    );
    expect(row?.inputTokens).toBe(
      reported.input > 0 ? Math.min(most, reported.input) : reservedInput,
    );
  });
  await fc.assert(property, { numRuns: runsOf(150), endOnFailure: true });
}, 120_000);

interface Answered {
  readonly input: unknown;
  readonly output: unknown;
  readonly bodyBytes: number;
}

const answered = fc.record({
  input: count,
  output: count,
  bodyBytes: fc.integer({ min: 1, max: 10_000 }),
});

/** Calls of one account in sequence, to an upstream with these counts. */
async function callAs(
  accountId: string,
  calls: readonly Answered[],
  services: CallServices,
): Promise<void> {
  for (const { input, output, bodyBytes: length } of calls) {
    await using server = countingServer({ prompt_tokens: input, completion_tokens: output });
    const model = modelOf({ targets: [targetOf("up")] });
    const caller = callerOf({ requestsPerMinute: 1_000, tokensPerMinute: 1e15 });
    const call = callOf({
      id: `req_${accountId}_${crypto.randomUUID()}`,
      caller: { ...caller, key: { ...caller.key, id: `key_${accountId}`, accountId } },
      environment: { name: "test", models: new Map([[model.alias, model]]) },
      snapshot: snapshotOf([upstreamOf("up", { adapter: adapterOf(server.url) })]),
    });
    const messages = [{ role: "user" as const, content: "hi" }];
    const chat = { request: readChatRequest({ model: model.alias, messages }), bodyBytes: length };
    await runChat(call, chat, services);
  }
}

function countingServer(usage: object) {
  const message = { role: "assistant", content: "hello" };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => Response.json({ choices, usage }),
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

const billOf = ({ inputTokens, outputTokens, usageSource, accountId }: UsageRecord) => ({
  inputTokens,
  outputTokens,
  usageSource,
  accountId,
});

test("the counts of one account's upstreams do not change another's reservations and bills", async () => {
  const calls = fc.array(answered, { minLength: 1, maxLength: 4 });
  const property = fc.asyncProperty(calls, calls, async (others, own) => {
    const outcomes = [];
    for (const isShared of [false, true]) {
      const plain = pipelineOf();
      const reserved: number[] = [];
      const { limits } = plain.services;
      const acquire: typeof limits.acquire = (request) => {
        if (request.callId.startsWith("req_acct_a")) reserved.push(request.tokens);
        return limits.acquire(request);
      };
      const settle: typeof limits.settle = (callId, tokens) => limits.settle(callId, tokens);
      const use: typeof limits.use = (callId, tokens) => limits.use(callId, tokens);
      const count: typeof limits.count = (scopes) => limits.count(scopes);
      const uncount: typeof limits.uncount = (counted) => limits.uncount(counted);
      const services = {
        ...plain.services,
        limits: {
          process: limits.process,
          placeOf: (scope: BudgetScope) => scope,
          acquire,
          settle,
          use,
          count,
          uncount,
        },
      };
      if (isShared) await callAs("acct_b", others, services);
      await callAs("acct_a", own, services);
      const bills = plain.records.filter(({ accountId }) => accountId === "acct_a").map(billOf);
      outcomes.push({ reserved, bills });
    }
    expect(outcomes[1]).toEqual(outcomes[0]);
  });
  await fc.assert(property, { numRuns: runsOf(40), endOnFailure: true });
}, 120_000);
