import { afterEach, expect, test } from "bun:test";
import {
  adapterOf,
  callOf,
  modelOf,
  pipelineOf,
  snapshotOf,
  targetOf,
  upstreamOf,
} from "../../../test/support/pipeline-fixtures.ts";
import { KeptLedger } from "../../../test/support/ledger-fixtures.ts";
import { ManualTimers } from "../../../test/support/manual-timers.ts";
import { ScriptedUpstream, type ScriptedStream } from "../../../test/support/scripted-upstream.ts";
import { systemClock, type Clock } from "../../domain/clock.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { ChatEvent } from "../../domain/chat/answer.ts";
import type { ChatCodec } from "../../upstreams/adapter.ts";
import type { CallLedger, TokenUsage } from "../../domain/usage/usage.ts";
import { openChatStream } from "../chat/chat-call.ts";
import type { Draining } from "../../admission/capacity/place.ts";
import { UpstreamPlaces } from "../../admission/capacity/upstream-places.ts";
import { nextOf } from "../../domain/waiting/flow.ts";
import type { MeteredStream } from "./metered-stream.ts";
import { readChatRequest } from "../../wires/chat/read-request.ts";

const upstreams: ScriptedUpstream[] = [];
afterEach(async () => {
  for (const upstream of upstreams.splice(0)) await upstream.stop();
});

interface Opening {
  readonly drain?: (Partial<Draining> & { readonly places?: UpstreamPlaces }) | undefined;
  readonly usageTimeoutMs?: number;
  readonly clock?: Clock;
  /** Events the upstream sends at once. */
  readonly begin?: (stream: ScriptedStream) => void;
  readonly codec?: Partial<ChatCodec>;
  readonly choices?: number;
  readonly ledger?: CallLedger;
  /** Whether the caller reads the first events. */
  readonly isRead?: boolean;
}

/** A stream after its first text, and its caller. */
async function open(opening: Opening = {}) {
  const { usageTimeoutMs = 5_000, clock = systemClock, codec = {}, choices = 1 } = opening;
  const upstream = new ScriptedUpstream(opening.begin);
  upstreams.push(upstream);
  const drain = opening.drain && {
    timeoutMs: 5_000,
    places: new UpstreamPlaces(2),
    ...opening.drain,
  };
  const adapter = adapterOf(upstream.url, { chat: codec });
  const built = upstreamOf("up", { adapter });
  const model = modelOf({ targets: [targetOf("up")] });
  const caller = new AbortController();
  const snapshot = snapshotOf([built]);
  const call = callOf({
    environment: { name: "test", models: new Map([[model.alias, model]]) },
    snapshot: { ...snapshot, settings: { ...snapshot.settings, usageTimeoutMs } },
    signal: caller.signal,
    receivedAt: clock.monotonic(),
  });
  const { ledger } = opening;
  const { services, records, running, placesAt } = pipelineOf({ clock, ...(ledger && { ledger }) });
  Object.assign(services.capacity, { draining: () => drain });
  const messages = [{ role: "user" as const, content: "hi" }];
  const request = readChatRequest({ model: model.alias, messages, stream: true, n: choices });
  const { answer } = await openChatStream(call, { request, bodyBytes: 240 }, services);
  if (opening.isRead !== false) await nextOf(answer);
  const leave = (): void => {
    caller.abort();
    answer.cancel();
  };
  const parts = { caller, places: drain?.places, inFlight: placesAt(built), running };
  return { upstream, answer, records, leave, ...parts };
}

function manualTime() {
  const timers = new ManualTimers();
  const schedule: Clock["schedule"] = (run, delayMs) => timers.schedule(run, delayMs);
  return { timers, clock: { ...systemClock, schedule } };
}

/** Reads all events as they come. */
function follow(answer: MeteredStream): readonly ChatEvent[] {
  const seen: ChatEvent[] = [];
  void readAll(answer, seen);
  return seen;
}

async function readAll(answer: MeteredStream, seen: ChatEvent[] = []): Promise<ChatEvent[]> {
  for (;;) {
    const events = await nextOf(answer);
    if (events === undefined) return seen;
    seen.push(...events);
  }
}

test("the end of a stream is told once it is in the ledger", async () => {
  const ledger = new KeptLedger();
  const closing = Promise.withResolvers<undefined>();
  const { upstream, answer } = await open({ ledger });
  ledger.written = closing.promise;
  let isTold = false;
  upstream.last.finish();
  upstream.last.usage();
  upstream.last.end();
  const ended = readAll(answer).finally(() => (isTold = true));
  await until(() => ledger.closed.length === 1);
  await Bun.sleep(20);
  expect(isTold).toBe(false);
  closing.resolve(undefined);
  expect((await ended).map(({ type }) => type)).toContain("usage-report");
});

const told = { inputTokens: 90, outputTokens: 700 };

async function until(isTrue: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000 && !isTrue(); tries += 1) await Bun.sleep(5);
  expect(isTrue()).toBe(true);
}

test("without a drain the upstream is aborted when the caller leaves, and the delivered output is counted", async () => {
  const { upstream, records, leave } = await open();
  leave();
  expect(records[0]).toMatchObject({
    outcome: "abandoned",
    status: 499,
    inputTokens: 80,
    outputTokens: 2,
    usageSource: "counted",
  });
  await until(() => upstream.last.isAborted);
});

/** An upstream that counts the input before its answer begins. */
function countsFirst(usage: TokenUsage): Partial<ChatCodec> {
  return {
    encodeStream(request, model) {
      const { chat } = adapterOf(upstreams.at(-1)?.url ?? "");
      if (chat === undefined) throw new Error("the adapter serves chat models");
      const exchange = chat.encodeStream(request, model);
      return {
        ...exchange,
        newDecoder(limits) {
          const decoder = exchange.newDecoder(limits);
          const push = decoder.push.bind(decoder);
          let started: readonly ChatEvent[] = [{ type: "usage-start", usage }];
          decoder.push = (bytes) => {
            const events = [...started, ...push(bytes)];
            started = [];
            return events;
          };
          return decoder;
        },
      };
    },
  };
}

const counted = { inputTokens: 61, outputTokens: 0, cachedInputTokens: 40, reasoningTokens: 0 };

test("input that was counted at the start is what an answer without a report has", async () => {
  const { records, leave } = await open({ codec: countsFirst(counted) });
  leave();
  expect(records[0]).toMatchObject({ inputTokens: 61, cachedInputTokens: 40, outputTokens: 2 });
});

test("a report at the end counts, not the start", async () => {
  const { upstream, answer, records } = await open({ codec: countsFirst(counted) });
  upstream.last.finish();
  upstream.last.usage();
  upstream.last.end();
  const rest = await readAll(answer);
  expect(rest.filter(({ type }) => type === "usage-report")).toHaveLength(1);
  expect(records[0]).toMatchObject({ ...told, usageSource: "upstream" });
});

test("with a drain the answer is read to the upstream's usage report", async () => {
  const { upstream, records, leave, places, inFlight } = await open({ drain: {} });
  leave();
  upstream.last.text("nobody reads this");
  await Bun.sleep(20);
  expect([records.length, upstream.last.isAborted, places?.count]).toEqual([0, false, 1]);
  upstream.last.finish();
  upstream.last.usage();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({
    outcome: "abandoned",
    status: 499,
    code: "caller_left",
    inputTokens: 90,
    outputTokens: 700,
    usageSource: "upstream",
  });
  expect(places?.count).toBe(0);
  await until(() => inFlight.count === 0);
});

test("a read that is running when the caller leaves is part of the drain", async () => {
  const { upstream, answer, records, leave } = await open({ drain: {} });
  const reading = nextOf(answer);
  leave();
  upstream.last.usage();
  upstream.last.finish();
  upstream.last.end();
  expect(await reading).toBeUndefined();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ outcome: "abandoned", outputTokens: 700 });
});

test("a drain ends at its timeout, and the delivered output is counted", async () => {
  const { upstream, records, leave, places } = await open({ drain: { timeoutMs: 30 } });
  leave();
  upstream.last.text("nobody reads this");
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ outputTokens: 2, usageSource: "counted" });
  await until(() => upstream.last.isAborted);
  expect(places?.count).toBe(0);
});

test("an answer without a free place to drain is aborted", async () => {
  const places = new UpstreamPlaces(1);
  const first = await open({ drain: { places } });
  const second = await open({ drain: { places } });
  first.leave();
  second.leave();
  expect([first.records.length, second.records.length]).toEqual([0, 1]);
  await until(() => second.upstream.last.isAborted);
  expect(first.upstream.last.isAborted).toBe(false);
  first.upstream.last.usage();
  first.upstream.last.end();
  await until(() => first.records.length === 1);
});

test("an upstream that breaks while it is drained leaves the count of the delivered output", async () => {
  const { upstream, records, leave, places } = await open({ drain: {} });
  leave();
  await upstream.stop();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ outcome: "abandoned", usageSource: "counted" });
  expect(places?.count).toBe(0);
});

test.each([
  ["without a drain", undefined],
  ["with a drain", {}],
])("a finished answer is completed even if the caller closes, %s", async (_, drain) => {
  const { upstream, answer, records, leave } = await open({ drain });
  upstream.last.finish();
  await nextOf(answer);
  leave();
  upstream.last.usage();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ outcome: "completed", status: 200, code: undefined });
  expect(records[0]).toMatchObject({ ...told, usageSource: "upstream" });
});

test("a close after the end changes nothing", async () => {
  const { upstream, answer, records, leave } = await open({ drain: {} });
  upstream.last.finish();
  upstream.last.usage();
  upstream.last.end();
  while ((await nextOf(answer)) !== undefined);
  leave();
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ outcome: "completed", outputTokens: 700 });
  expect(await nextOf(answer)).toBeUndefined();
});

test("a caller that leaves during a read ends the call once, as abandoned", async () => {
  const { answer, records, leave } = await open();
  const reading = nextOf(answer);
  leave();
  expect(await reading).toBeUndefined();
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ outcome: "abandoned" });
});

test("the usage of a finished answer is awaited after the caller has left, even without a free place to drain", async () => {
  const drain = { places: new UpstreamPlaces(0) };
  const { upstream, answer, records, leave, inFlight } = await open({ drain });
  upstream.last.finish();
  await nextOf(answer);
  const reading = nextOf(answer);
  leave();
  expect(await reading).toBeUndefined();
  await Bun.sleep(20);
  expect([records.length, upstream.last.isAborted]).toEqual([0, false]);
  upstream.last.usage();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ ...told, outcome: "completed", usageSource: "upstream" });
  await until(() => inFlight.count === 0);
});

test("missing usage is awaited only until its timeout", async () => {
  const { timers, clock } = manualTime();
  const { upstream, answer, records, leave } = await open({ clock, usageTimeoutMs: 3_000 });
  upstream.last.finish();
  await nextOf(answer);
  leave();
  timers.advance(2_999);
  await Bun.sleep(20);
  expect([records.length, upstream.last.isAborted]).toEqual([0, false]);
  timers.advance(1);
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ outcome: "completed", inputTokens: 80, outputTokens: 2 });
  expect(records[0]?.usageSource).toBe("counted");
  await until(() => upstream.last.isAborted);
});

test.each([
  ["finished", undefined],
  ["drained", { timeoutMs: 5_000 }],
] as const)("a shutdown closes the account of a %s answer", async (state, drain) => {
  const { clock } = manualTime();
  const { upstream, answer, records, leave, running } = await open({ drain, clock });
  if (state === "finished") {
    upstream.last.finish();
    await nextOf(answer);
  }
  leave();
  await Bun.sleep(20);
  expect(records).toHaveLength(0);
  running.endAll(() => new GatewayError("model_unavailable", { message: "shutting down" }));
  await until(() => records.length === 1);
  expect(records[0]?.outcome).toBe(state === "finished" ? "completed" : "abandoned");
  expect(records[0]?.usageSource).toBe("counted");
  await until(() => upstream.last.isAborted);
});

test("an answer that finishes during a drain gets the usage timeout from then on", async () => {
  const { timers, clock } = manualTime();
  const opening = { clock, drain: { timeoutMs: 1_000 }, usageTimeoutMs: 3_000 };
  const { upstream, records, leave, places } = await open(opening);
  leave();
  timers.advance(900);
  upstream.last.finish();
  await Bun.sleep(50);
  timers.advance(2_900);
  await Bun.sleep(20);
  expect(records).toHaveLength(0);
  upstream.last.usage();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ ...told, outcome: "abandoned", usageSource: "upstream" });
  expect(places?.count).toBe(0);
});

test("a call that the gateway ends after the finish fails at once, and is billed as reported", async () => {
  const { upstream, answer, records, caller } = await open();
  upstream.last.finish();
  await nextOf(answer);
  const reading = nextOf(answer);
  const ended = new GatewayError("deadline_exceeded", { message: "too late" });
  caller.abort(ended);
  expect(await reading.catch((error: unknown) => error)).toBe(ended);
  expect(await nextOf(answer).catch((error: unknown) => error)).toBe(ended);
  expect(records).toHaveLength(0);
  upstream.last.usage();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ ...told, outcome: "failed", status: 408 });
});

test("a call that the gateway ends before the finish is closed at once", async () => {
  const { upstream, answer, records, caller } = await open();
  const reading = nextOf(answer);
  caller.abort(new GatewayError("deadline_exceeded", { message: "too late" }));
  expect(await reading.catch((error: unknown) => error)).toBeInstanceOf(GatewayError);
  expect(records[0]).toMatchObject({ outcome: "failed", status: 408, inputTokens: 80 });
  await until(() => upstream.last.isAborted);
});

test("input usage reported at the start is billed when the caller leaves", async () => {
  const begin = (stream: ScriptedStream): void => {
    stream.chunk({
      choices: [{ index: 0, delta: { content: "Hello" } }],
      usage: { prompt_tokens: 500, completion_tokens: 1 },
    });
  };
  const { answer, upstream, records, leave } = await open({ begin });
  upstream.last.text(" there, all of you");
  await nextOf(answer);
  leave();
  expect(records[0]).toMatchObject({ inputTokens: 500, outputTokens: 6 });
  expect(records[0]).toMatchObject({ outcome: "abandoned", usageSource: "counted" });
});

test("usage that arrived before the first read is billed", async () => {
  const begin = (stream: ScriptedStream): void => {
    stream.chunk({
      choices: [{ index: 0, delta: { content: "Hello" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 90, completion_tokens: 700 },
    });
  };
  const { records, leave } = await open({ begin, isRead: false });
  leave();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ ...told, outcome: "abandoned", usageSource: "upstream" });
});

const requestEach = { codec: { takesChoiceCount: false }, choices: 2 };

test("with one request per choice, an abandoned call pays the reported usage", async () => {
  const { upstream, answer, records, leave } = await open(requestEach);
  const seen = follow(answer);
  const [first, second] = upstream.streams;
  first?.finish();
  first?.usage(500, 900);
  first?.end();
  await until(() => seen.some(({ type }) => type === "usage-report"));
  leave();
  expect(records[0]).toMatchObject({ outcome: "abandoned", inputTokens: 500, outputTokens: 900 });
  await until(() => second?.isAborted === true);
});

test("with one request per choice, usage is awaited once all are finished", async () => {
  const { upstream, answer, records, leave } = await open(requestEach);
  const seen = follow(answer);
  for (const stream of upstream.streams) stream.finish();
  await until(() => seen.filter(({ type }) => type === "choice-finish").length === 2);
  leave();
  for (const stream of upstream.streams) {
    stream.usage();
    stream.end();
  }
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ inputTokens: 180, outputTokens: 1_400 });
  expect(records[0]).toMatchObject({ outcome: "completed", usageSource: "upstream" });
});
