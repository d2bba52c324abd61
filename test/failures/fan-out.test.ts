import { afterEach, expect, test } from "bun:test";
import type { ChatEvent } from "../../src/domain/chat/answer.ts";
import type { Conversation } from "../../src/domain/chat/conversation.ts";
import type { Call } from "../../src/snapshot/call.ts";
import { openChatStream, runChat } from "../../src/call/chat/chat-call.ts";
import { nextOf } from "../../src/domain/waiting/flow.ts";
import type { MeteredStream } from "../../src/call/metering/metered-stream.ts";
import type { Upstream } from "../../src/snapshot/snapshot.ts";
import {
  adapterOf,
  callOf,
  type CallValues,
  modelOf,
  pipelineOf,
  snapshotOf,
  targetOf,
  upstreamOf,
  gatewayErrorOf,
} from "../support/pipeline-fixtures.ts";
import { readChatRequest } from "../../src/wires/chat/read-request.ts";
import { contentOf } from "../support/answer-texts.ts";

/** Longer than any test, so that a wait in a test only ends by an abort. */
const timeouts = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 };

/** Answers the request number `order`. */
type Respond = (order: number, body: Record<string, unknown>) => Response | Promise<Response>;

/** A real server that takes one choice a request and counts running requests. */
class OneChoiceServer implements AsyncDisposable {
  readonly bodies: Record<string, unknown>[] = [];
  open = 0;
  mostOpen = 0;
  /** Requests whose connection the gateway closed before the end of the answer. */
  closed = 0;
  readonly #server;

  constructor(respond: Respond) {
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      fetch: async (request) => {
        const body = (await request.json()) as Record<string, unknown>;
        const order = this.bodies.push(body) - 1;
        this.open += 1;
        this.mostOpen = Math.max(this.mostOpen, this.open);
        request.signal.addEventListener("abort", () => {
          this.closed += 1;
        });
        const response = await respond(order, body);
        this.open -= 1;
        return response;
      },
    });
  }

  upstream(name: string, values: Partial<Upstream> = {}): Upstream {
    const chat = { takesChoiceCount: false };
    const adapter = adapterOf(`http://127.0.0.1:${this.#server.port}/v1`, { chat });
    return upstreamOf(name, { adapter, maxInFlight: 100, timeouts, ...values });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

const servers: OneChoiceServer[] = [];
function serve(respond: Respond): OneChoiceServer {
  const server = new OneChoiceServer(respond);
  servers.push(server);
  return server;
}
afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
});

const usage = { prompt_tokens: 10, completion_tokens: 3 };

function whole(text: string, counts: unknown = usage): Response {
  const message = { role: "assistant", content: text };
  return Response.json({
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage: counts,
    system_fingerprint: "fp",
  });
}

function refusal(status: number): Response {
  return Response.json({ error: { message: "no", type: "x" } }, { status });
}

const delta = (content: string) => ({ choices: [{ index: 0, delta: { content } }] });
const finish = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
const frame = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

/** A stream of pieces; it waits for pieces that are promises. */
function stream(pieces: readonly (string | Promise<unknown>)[]): Response {
  async function* body() {
    for (const piece of pieces) {
      if (typeof piece === "string") yield new TextEncoder().encode(piece);
      else await piece;
      await Bun.sleep(1);
    }
  }
  return new Response(body(), { headers: { "content-type": "text/event-stream" } });
}

function wholeStream(words: readonly string[], counts: unknown = usage): Response {
  const fingerprint = { ...delta(""), system_fingerprint: "fp" };
  const report = counts === null ? [] : [frame({ choices: [], usage: counts })];
  const texts = words.map((word) => frame(delta(word)));
  return stream([frame(fingerprint), ...texts, frame(finish), ...report, "data: [DONE]\n\n"]);
}

const never = new Promise<never>(() => undefined);

function chat(n: number, isStreamed = false): { request: Conversation; bodyBytes: number } {
  const messages = [{ role: "user" as const, content: "say something" }];
  const body = { model: "alpha-sonnet-4", messages, n, stream: isStreamed };
  return { request: readChatRequest(body), bodyBytes: 300 };
}

function callAt(upstreams: readonly Upstream[], values: CallValues = {}): Call {
  const targets = upstreams.map(({ name }, index) => targetOf(name, { priority: index + 1 }));
  const model = modelOf({ targets });
  return callOf({
    environment: { name: "test", models: new Map([[model.alias, model]]) },
    snapshot: snapshotOf(upstreams),
    ...values,
  });
}

/** Like `callAt`, for a call that tries each of two targets once. */
function onceEach(upstreams: readonly Upstream[]): Call {
  const call = callAt(upstreams);
  const routing = { ...call.snapshot.routing, attempts: 2 };
  return { ...call, snapshot: { ...call.snapshot, routing } };
}

async function eventsOf(answer: MeteredStream): Promise<ChatEvent[]> {
  const events: ChatEvent[] = [];
  for (let batch = await nextOf(answer); batch !== undefined; batch = await nextOf(answer)) {
    events.push(...batch);
  }
  return events;
}

/** The sum of the choices' counts. */
function wholeReports(events: readonly ChatEvent[]): readonly ChatEvent[] {
  return events.filter((event) => event.type === "usage-report" && event.isPart !== true);
}

function textOf(events: readonly ChatEvent[], choice: number): string {
  return events
    .map((event) => (event.type === "text-delta" && event.choice === choice ? event.text : ""))
    .join("");
}

/** Resolves once the condition holds; the test's own timeout ends a wait that fails. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(1);
}

test("twenty choices are twenty requests, eight at once, one answer and one row", async () => {
  const server = serve(async (order) => {
    // Every group waits until it has reached its largest size.
    await until(() => server.open === 8 || server.bodies.length === 20);
    return whole(`text ${order}`);
  });
  const { services, records } = pipelineOf();
  const { answer } = await runChat(callAt([server.upstream("up")]), chat(20), services);
  expect(answer.choices.map(({ index }) => index)).toEqual([...Array(20).keys()]);
  expect(new Set(answer.choices.map(contentOf)).size).toBe(20);
  expect(answer.systemFingerprint).toBe("fp");
  expect(server.mostOpen).toBe(8);
  expect(server.bodies.filter(({ n }) => typeof n === "number")).toEqual([]);
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({
    inputTokens: 200,
    outputTokens: 60,
    usageSource: "upstream",
    attempts: 1,
    outcome: "completed",
  });
});

test("choices never take more places than the upstream has", async () => {
  const server = serve(async (order) => {
    await until(() => server.open === 3 || server.bodies.length === 7);
    return whole(`text ${order}`);
  });
  const upstream = server.upstream("up", { maxInFlight: 4 });
  const { services, placesAt } = pipelineOf();
  placesAt(upstream).tryTake();
  const { answer } = await runChat(callAt([upstream]), chat(7), services);
  expect(answer.choices).toHaveLength(7);
  expect(server.mostOpen).toBe(3);
  expect(placesAt(upstream).count).toBe(1);
});

test("the first refusal ends the other choices, and answered ones are billed", async () => {
  const server = serve(async (order) => {
    if (order === 0) return whole("done");
    await until(() => server.bodies.length === 5);
    return order === 3 ? refusal(400) : never;
  });
  const upstream = server.upstream("up");
  const { services, records, placesAt } = pipelineOf();
  const error = await gatewayErrorOf(runChat(callAt([upstream]), chat(5), services));
  expect(error.status).toBe(400);
  await until(() => server.closed === 3);
  expect(placesAt(upstream).count).toBe(0);
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ outcome: "failed", inputTokens: 10, outputTokens: 3 });
});

/** One place, so that choices run in sequence and a refusal comes after answers. */
const inTurn = () => ({ maxInFlight: 1 });

test("the next target gets the unanswered choices after one was throttled", async () => {
  const limited = serve((order) => (order === 2 ? refusal(429) : whole(`first ${order}`)));
  const sound = serve((order) => whole(`second ${order}`));
  const { services, records } = pipelineOf();
  const upstreams = [limited.upstream("first", inTurn()), sound.upstream("second", inTurn())];
  const { answer } = await runChat(callAt(upstreams), chat(5), services);
  expect(answer.choices.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
  const texts = ["first 0", "first 1", "second 0", "second 1", "second 2"];
  expect(answer.choices.map(contentOf)).toEqual(texts);
  expect(records[0]).toMatchObject({ attempts: 2, inputTokens: 50, outputTokens: 15 });
});

test("a target that supports n is asked for the missing choices", async () => {
  const limited = serve((order) => (order === 1 ? refusal(429) : whole("first")));
  const several = serve((_, { n }) => {
    const choices = Array.from({ length: Number(n) }, (_choice, index) => ({
      index,
      message: { role: "assistant", content: `second ${index}` },
      finish_reason: "stop",
    }));
    return Response.json({ choices, usage: { prompt_tokens: 10, completion_tokens: 8 } });
  });
  const { adapter, ...rest } = several.upstream("second");
  const { chat: codec } = adapter;
  if (codec === undefined) throw new Error("the adapter serves chat models");
  const second = { ...rest, adapter: { ...adapter, chat: { ...codec, takesChoiceCount: true } } };
  const { services, records } = pipelineOf();
  const call = callAt([limited.upstream("first", inTurn()), second]);
  const { answer } = await runChat(call, chat(3), services);
  const texts = ["first", "second 0", "second 1"];
  expect(answer.choices.map((choice) => [choice.index, contentOf(choice)])).toEqual([
    ...texts.entries(),
  ]);
  expect(records[0]).toMatchObject({ inputTokens: 20, outputTokens: 11 });
});

test("a failed call is billed for the answers of all its targets", async () => {
  const first = serve((order) => (order === 2 ? refusal(429) : whole("first")));
  const second = serve((order) => (order === 1 ? refusal(500) : whole("second")));
  const { services, records } = pipelineOf();
  const call = onceEach([first.upstream("first", inTurn()), second.upstream("second", inTurn())]);
  expect((await gatewayErrorOf(runChat(call, chat(5), services))).status).toBe(503);
  expect(records[0]).toMatchObject({ outcome: "failed", inputTokens: 30, outputTokens: 9 });
});

test("a call is estimated if one choice has no counts", async () => {
  const server = serve((order) => whole("abcd", order === 1 ? null : usage));
  const { services, records } = pipelineOf();
  await runChat(callAt([server.upstream("up")]), chat(3), services);
  // 300 bytes are 100 tokens, for each of three requests.
  expect(records[0]).toMatchObject({ usageSource: "counted", inputTokens: 300 });
});

test("the input is reserved once for each request", async () => {
  const server = serve(() => whole("hello"));
  const separate = server.upstream("up");
  const { chat: codec } = separate.adapter;
  if (codec === undefined) throw new Error("the adapter serves chat models");
  const adapter = { ...separate.adapter, chat: { ...codec, takesChoiceCount: true } };
  const reserved = async (upstream: Upstream, choices: number) => {
    const { services } = pipelineOf();
    const { admission } = await runChat(callAt([upstream]), chat(choices), services);
    return admission.reservedTokens;
  };
  expect(await reserved(separate, 1)).toBe(100 + 50);
  expect(await reserved(separate, 4)).toBe(4 * 100 + 4 * 50);
  expect(await reserved({ ...separate, adapter }, 4)).toBe(100 + 4 * 50);
});

test("the ratio of tokens to bytes is not learned from the input of several choices", async () => {
  const server = serve(() => whole("hello", { prompt_tokens: 600, completion_tokens: 3 }));
  const { services } = pipelineOf();
  const call = callAt([server.upstream("up")]);
  const reserved = async (choices: number) => {
    const { admission } = await runChat(call, chat(choices), services);
    return admission.reservedTokens;
  };
  const before = await reserved(4);
  for (let calls = 0; calls < 20; calls += 1) await reserved(4);
  expect(await reserved(4)).toBeLessThanOrEqual(before);
  for (let calls = 0; calls < 20; calls += 1) await reserved(1);
  expect(await reserved(4)).toBeGreaterThan(before);
});

test("streams of choices become one stream with the indexes of the choices and one count", async () => {
  const words = ["one ", "two ", "three"];
  const server = serve((order) => wholeStream(words.map((word) => `${order}:${word}`)));
  const { services, records } = pipelineOf();
  const call = callAt([server.upstream("up")]);
  const { answer } = await openChatStream(call, chat(12, true), services);
  const events = await eventsOf(answer);
  const texts = Array.from({ length: 12 }, (_, choice) => textOf(events, choice));
  expect(texts.every((text) => /^(\d+):one \1:two \1:three$/.test(text))).toBe(true);
  expect(new Set(texts).size).toBe(12);
  const finishes = events.filter(({ type }) => type === "choice-finish");
  expect(finishes).toHaveLength(12);
  expect(events.filter(({ type }) => type === "answer-start")).toHaveLength(1);
  expect(wholeReports(events)).toHaveLength(1);
  expect(events.at(-1)).toMatchObject({ usage: { inputTokens: 120, outputTokens: 36 } });
  expect(server.bodies.filter(({ n }) => typeof n === "number")).toEqual([]);
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ inputTokens: 120, outputTokens: 36, attempts: 1 });
});

test("the stream has no count if one choice has none", async () => {
  const server = serve((order) => wholeStream(["hi"], order === 1 ? null : usage));
  const { services, records } = pipelineOf();
  const call = callAt([server.upstream("up")]);
  const { answer } = await openChatStream(call, chat(3, true), services);
  const events = await eventsOf(answer);
  expect(wholeReports(events)).toEqual([]);
  expect(records[0]).toMatchObject({ usageSource: "counted", inputTokens: 300 });
});

test("the next target serves all choices if one is refused before its first event", async () => {
  const limited = serve((order) =>
    order === 2 ? refusal(429) : stream([frame(delta("a")), never]),
  );
  const sound = serve(() => wholeStream(["b"]));
  const first = limited.upstream("first");
  const { services, records, placesAt } = pipelineOf();
  const call = callAt([first, sound.upstream("second")]);
  const { answer } = await openChatStream(call, chat(3, true), services);
  const events = await eventsOf(answer);
  expect([0, 1, 2].map((choice) => textOf(events, choice))).toEqual(["b", "b", "b"]);
  await until(() => limited.closed === 2);
  expect(placesAt(first).count).toBe(0);
  expect(records[0]).toMatchObject({ attempts: 2, outcome: "completed" });
});

test("a choice that is cut ends the others and the call", async () => {
  const server = serve((order) =>
    order === 1
      ? stream([frame(delta("a")), frame({ error: { message: "broken", code: 500 } })])
      : stream([frame(delta("a")), never]),
  );
  const upstream = server.upstream("up");
  const { services, records, placesAt } = pipelineOf();
  const { answer } = await openChatStream(callAt([upstream]), chat(3, true), services);
  const error = await gatewayErrorOf(eventsOf(answer));
  expect([error.status, error.code]).toEqual([503, "model_unavailable"]);
  await until(() => server.closed >= 2);
  expect(placesAt(upstream).count).toBe(0);
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ outcome: "failed", outputTokens: 3, inputTokens: 300 });
});

test("a caller that leaves closes the streams of all choices", async () => {
  const server = serve(() => stream([frame(delta("a")), never]));
  const upstream = server.upstream("up");
  const { services, records, placesAt } = pipelineOf();
  const { answer } = await openChatStream(callAt([upstream]), chat(6, true), services);
  await nextOf(answer);
  answer.cancel();
  await until(() => server.closed === 6);
  expect(placesAt(upstream).count).toBe(0);
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ outcome: "abandoned", status: 499 });
});

test("a caller that leaves while choices are being opened closes those too", async () => {
  const server = serve((order) => (order < 2 ? stream([frame(delta("a")), never]) : never));
  const upstream = server.upstream("up");
  const { services, records, placesAt } = pipelineOf();
  const leaving = new AbortController();
  const call = callAt([upstream], { signal: leaving.signal });
  const opening = gatewayErrorOf(openChatStream(call, chat(4, true), services));
  await until(() => server.bodies.length === 4);
  leaving.abort();
  expect((await opening).status).toBe(499);
  await until(() => server.closed === 4);
  expect(placesAt(upstream).count).toBe(0);
  expect(records).toHaveLength(1);
});

/** A connection that stays open for a while after the answer is complete. */
const lingeringStream = (): Response => {
  const pieces = [frame(delta("hello")), frame(finish), frame({ choices: [], usage })];
  return stream([...pieces, "data: [DONE]\n\n", Bun.sleep(200)]);
};

test.each([
  [8, 9],
  [2, 3],
  [1, 3],
])("with %d places, each of %d streamed choices waits for one", async (places, n) => {
  const server = serve(lingeringStream);
  const upstream = server.upstream("up", { maxInFlight: places });
  const { services, records, placesAt } = pipelineOf();
  const { answer } = await openChatStream(callAt([upstream]), chat(n, true), services);
  const events = await eventsOf(answer);
  const texts = Array.from({ length: n }, (_, choice) => textOf(events, choice));
  expect(new Set(texts)).toEqual(new Set(["hello"]));
  expect(server.bodies).toHaveLength(n);
  expect(records[0]).toMatchObject({ attempts: 1, outcome: "completed" });
  await until(() => placesAt(upstream).count === 0);
});

test.each([true, false])(
  "other calls that take every place delay later choices, but fail none (streamed: %p)",
  async (isStreamed) => {
    const server = serve(() => (isStreamed ? lingeringStream() : whole("hello")));
    const upstream = server.upstream("up", { maxInFlight: 2 });
    const call = callAt([upstream]);
    const { services, records, placesAt } = pipelineOf();
    const places = placesAt(upstream);
    let isOver = false;
    const compete = async (): Promise<void> => {
      while (!isOver) {
        if (places.tryTake()) {
          await Bun.sleep(5);
          places.giveBack();
        }
        await Promise.resolve();
        if (places.free === 0) await Bun.sleep(1);
      }
    };
    const run = async (): Promise<void> => {
      if (!isStreamed) return void (await runChat(call, chat(6), services));
      const { answer } = await openChatStream(call, chat(6, true), services);
      await eventsOf(answer);
    };
    const running = run();
    const competing = compete();
    await running;
    isOver = true;
    await competing;
    expect(records[0]).toMatchObject({ outcome: "completed", inputTokens: 60 });
    await until(() => places.count === 0);
  },
);

test("a caller that leaves while a choice waits for a place leaves no request and no place", async () => {
  const server = serve((order) =>
    order === 0 ? wholeStream(["hi"]) : stream([frame(delta("a")), never]),
  );
  const upstream = server.upstream("up", { maxInFlight: 2 });
  const { services, records, placesAt } = pipelineOf();
  const { answer } = await openChatStream(callAt([upstream]), chat(3, true), services);
  // The place of the first choice is free again.
  placesAt(upstream).limit = 1;
  const reading = eventsOf(answer).catch(() => undefined);
  await until(() => placesAt(upstream).count === 1);
  answer.cancel();
  await until(() => placesAt(upstream).count === 0);
  expect(server.bodies).toHaveLength(2);
  expect(records).toHaveLength(1);
  void reading;
});

test("a request is encoded once for each target, for all of its choices", async () => {
  const limited = serve(() => refusal(429));
  const sound = serve((_, { stream: isStreamed }) =>
    isStreamed === true ? wholeStream(["hi"]) : whole("hi"),
  );
  const encoded: string[] = [];
  const counting = (name: string, server: OneChoiceServer): Upstream => {
    const { adapter, ...rest } = server.upstream(name);
    const { chat: codec } = adapter;
    if (codec === undefined) throw new Error("the adapter serves chat models");
    const counted: typeof codec = {
      ...codec,
      encode(...asked) {
        encoded.push(`${name} whole`);
        return codec.encode(...asked);
      },
      encodeStream(...asked) {
        encoded.push(`${name} stream`);
        return codec.encodeStream(...asked);
      },
    };
    return { ...rest, adapter: { ...adapter, chat: counted } };
  };
  const call = callAt([counting("first", limited), counting("second", sound)]);
  await runChat(call, chat(20), pipelineOf().services);
  // With a first target that has not throttled yet.
  const { answer } = await openChatStream(call, chat(20, true), pipelineOf().services);
  const events = await eventsOf(answer);
  expect(textOf(events, 19)).toBe("hi");
  expect(sound.bodies).toHaveLength(40);
  expect(encoded).toEqual(["first whole", "second whole", "first stream", "second stream"]);
});
