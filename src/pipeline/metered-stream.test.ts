import { afterEach, expect, test } from "bun:test";
import {
  adapterOf,
  callOf,
  modelOf,
  pipelineOf,
  snapshotOf,
  targetOf,
  upstreamOf,
} from "../../test/support/pipeline-fixtures.ts";
import { openChatStream } from "./chat-call.ts";
import type { Draining } from "./drain.ts";
import { InFlight } from "./in-flight.ts";

/** A real upstream that streams what the test tells it to, when it tells it to. */
class ToldUpstream {
  readonly #server: Bun.Server<undefined>;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  isAborted = false;

  constructor() {
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => {
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => {
            this.#controller = controller;
            this.text("Hello");
          },
          cancel: () => {
            this.isAborted = true;
          },
        });
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      },
    });
    upstreams.push(this);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/v1`;
  }

  text(content: string): void {
    this.#send({ choices: [{ index: 0, delta: { role: "assistant", content } }] });
  }

  finish(): void {
    this.#send({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  }

  usage(): void {
    const usage = { prompt_tokens: 90, completion_tokens: 700, total_tokens: 790 };
    this.#send({ choices: [], usage });
  }

  end(): void {
    this.#sendText("data: [DONE]\n\n");
    this.#controller?.close();
  }

  async stop(): Promise<void> {
    await this.#server.stop(true);
  }

  #send(chunk: object): void {
    this.#sendText(`data: ${JSON.stringify({ id: "c", model: "m", ...chunk })}\n\n`);
  }

  #sendText(text: string): void {
    this.#controller?.enqueue(new TextEncoder().encode(text));
  }
}

const upstreams: ToldUpstream[] = [];
afterEach(async () => {
  for (const upstream of upstreams.splice(0)) await upstream.stop();
});

/** A stream whose first text has come, and its caller. */
async function open(draining: Partial<Draining> | undefined) {
  const upstream = new ToldUpstream();
  const drain = draining && { timeoutMs: 5_000, places: new InFlight(2), ...draining };
  const built = upstreamOf("up", { adapter: adapterOf(upstream.url), drain });
  const model = modelOf({ targets: [targetOf("up")] });
  const caller = new AbortController();
  const call = callOf({
    environment: { name: "test", models: new Map([[model.alias, model]]) },
    snapshot: snapshotOf([built]),
    signal: caller.signal,
  });
  const { services, records } = pipelineOf();
  const messages = [{ role: "user" as const, content: "hi" }];
  const request = { model: model.alias, messages, stream: true };
  const { answer } = await openChatStream(call, { request, bodyBytes: 240 }, services);
  await answer.next();
  const leave = (): void => {
    caller.abort();
    answer.cancel();
  };
  return { upstream, answer, records, leave, places: drain?.places, inFlight: built.inFlight };
}

async function until(isTrue: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000 && !isTrue(); tries += 1) await Bun.sleep(5);
  expect(isTrue()).toBe(true);
}

test("without a drain the upstream is aborted when the caller leaves, and what came is counted", async () => {
  const { upstream, records, leave } = await open(undefined);
  leave();
  expect(records[0]).toMatchObject({
    outcome: "abandoned",
    status: 499,
    inputTokens: 80,
    outputTokens: 2,
    usageSource: "counted",
  });
  await until(() => upstream.isAborted);
});

test("with a drain the answer is read on to the upstream's count", async () => {
  const { upstream, records, leave, places, inFlight } = await open({});
  leave();
  upstream.text("nobody reads this");
  await Bun.sleep(20);
  expect([records.length, upstream.isAborted, places?.count]).toEqual([0, false, 1]);
  upstream.finish();
  upstream.usage();
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

test("a read that is under way when the caller leaves is part of the drain", async () => {
  const { upstream, answer, records, leave } = await open({});
  const reading = answer.next();
  leave();
  upstream.usage();
  upstream.finish();
  upstream.end();
  expect(await reading).toBeUndefined();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ outcome: "abandoned", outputTokens: 700 });
});

test("a drain ends when its time is over, and what was delivered is counted", async () => {
  const { upstream, records, leave, places } = await open({ timeoutMs: 30 });
  leave();
  upstream.text("nobody reads this");
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ outputTokens: 2, usageSource: "counted" });
  await until(() => upstream.isAborted);
  expect(places?.count).toBe(0);
});

test("an answer for which no place is free is aborted", async () => {
  const places = new InFlight(1);
  const first = await open({ places });
  const second = await open({ places });
  first.leave();
  second.leave();
  expect([first.records.length, second.records.length]).toEqual([0, 1]);
  await until(() => second.upstream.isAborted);
  expect(first.upstream.isAborted).toBe(false);
  first.upstream.usage();
  first.upstream.end();
  await until(() => first.records.length === 1);
});

test("an upstream that breaks while it is drained leaves the count of what was delivered", async () => {
  const { upstream, records, leave, places } = await open({});
  leave();
  await upstream.stop();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ outcome: "abandoned", usageSource: "counted" });
  expect(places?.count).toBe(0);
});

test.each([
  ["without a drain", undefined],
  ["with a drain", {}],
])("finished wins over closed, %s", async (_, draining) => {
  const { upstream, answer, records, leave } = await open(draining);
  upstream.finish();
  await answer.next();
  leave();
  upstream.usage();
  await until(() => records.length === 1);
  expect(records[0]).toMatchObject({ outcome: "completed", status: 200, code: undefined });
  expect(records[0]?.usageSource).toBe(draining === undefined ? "counted" : "upstream");
});

test("a close after the end changes nothing", async () => {
  const { upstream, answer, records, leave } = await open({});
  upstream.finish();
  upstream.usage();
  upstream.end();
  while ((await answer.next()) !== undefined);
  leave();
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ outcome: "completed", outputTokens: 700 });
  expect(await answer.next()).toBeUndefined();
});

test("a caller that leaves while a batch is awaited ends the call once, as left", async () => {
  const { answer, records, leave } = await open(undefined);
  const reading = answer.next();
  leave();
  expect(await reading).toBeUndefined();
  expect(records).toHaveLength(1);
  expect(records[0]).toMatchObject({ outcome: "abandoned" });
});
