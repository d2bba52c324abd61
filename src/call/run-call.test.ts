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
import { KeptLedger } from "../../test/support/ledger-fixtures.ts";
import { GatewayError } from "../domain/errors/gateway-error.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../domain/errors/failure-kind.ts";
import type { UpstreamAdapter, UpstreamRequest } from "../upstreams/adapter.ts";
import type { EnterResult } from "../admission/capacity/place.ts";
import { runChat } from "./chat/chat-call.ts";
import type { CallServices } from "./services.ts";
import { readChatRequest } from "../wires/chat/read-request.ts";
import { contentOf } from "../../test/support/answer-texts.ts";

/** A server whose answers depend on the credential. */
function serve(respond: (authorization: string) => Response) {
  const seen: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const authorization = request.headers.get("authorization") ?? "";
      seen.push(authorization);
      return respond(authorization);
    },
  });
  servers.push(server);
  return { seen, url: `http://127.0.0.1:${server.port}/v1` };
}

const servers: { stop(closeActive: boolean): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true);
});

async function until(isTrue: () => boolean): Promise<void> {
  for (let tries = 0; tries < 1_000 && !isTrue(); tries += 1) await Bun.sleep(5);
  expect(isTrue()).toBe(true);
}

function answer(text: string): Response {
  const message = { role: "assistant", content: text };
  return Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }] });
}

function down(): Response {
  return new Response("", { status: 500 });
}

/** A target that does not support the request. */
function unable(param: string): UpstreamAdapter {
  const failure = (): never => {
    throw new UpstreamFailure({ kind: "unsupported", message: `no ${param} here`, param });
  };
  return adapterOf("http://127.0.0.1:1/v1", { chat: { encode: failure } });
}

/** Runs a chat call over targets in the order of the adapters. */
async function run(adapters: readonly UpstreamAdapter[], services: Partial<CallServices> = {}) {
  const upstreams = adapters.map((adapter, index) => upstreamOf(`up${index}`, { adapter }));
  const targets = upstreams.map(({ name }, index) => targetOf(name, { priority: index + 1 }));
  const model = modelOf({ targets });
  const call = callOf({
    environment: { name: "test", models: new Map([[model.alias, model]]) },
    snapshot: snapshotOf(upstreams),
  });
  const pipeline = pipelineOf(services);
  const messages = [{ role: "user" as const, content: "hi" }];
  const chat = { request: readChatRequest({ model: model.alias, messages }), bodyBytes: 100 };
  try {
    const { answer: result } = await runChat(call, chat, pipeline.services);
    return { ...pipeline, text: contentOf(result.choices[0] ?? { blocks: [] }), error: undefined };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { ...pipeline, text: undefined, error };
  }
}

test("a target that does not support the request is skipped", async () => {
  const sound = serve(() => answer("hello"));
  const { text, records } = await run([unable("tools"), adapterOf(sound.url)]);
  expect(text).toBe("hello");
  expect(records[0]).toMatchObject({ attempts: 2, outcome: "completed", target: "up1/m" });
});

test("a request that no target supports is a 400", async () => {
  const { error, records } = await run([unable("tools"), unable("seed")]);
  expect(error).toMatchObject({
    status: 400,
    code: "unsupported_parameter",
    message: "no tools here",
    param: "tools",
  });
  expect(records[0]).toMatchObject({ attempts: 2, status: 400 });
});

test.each([
  ["before", (broken: UpstreamAdapter) => [broken, unable("tools")]],
  ["after", (broken: UpstreamAdapter) => [unable("tools"), broken]],
])("a target that was down %s an unsupported one might have served the call", async (_, order) => {
  const { error } = await run(order(adapterOf(serve(down).url)));
  expect([error?.status, error?.code]).toEqual([503, "model_unavailable"]);
});

/** Signs every request with a new credential, as if it was just renewed. */
function renewing(url: string, refusal: UpstreamFailureKind): UpstreamAdapter {
  let credentials = 0;
  return {
    ...adapterOf(url),
    authorize(request: UpstreamRequest) {
      credentials += 1;
      const headers = { ...request.headers, authorization: `credential ${credentials}` };
      return Promise.resolve({ ...request, headers });
    },
    readFailure: ({ status }) => ({ kind: refusal, message: "refused", status }),
  };
}

const refused = () => new Response("", { status: 403 });

test("an expired credential is renewed and retried once at the same target", async () => {
  const server = serve((credential) => (credential === "credential 1" ? refused() : answer("hi")));
  const { text, records, failures } = await run([renewing(server.url, "stale-credential")]);
  expect(text).toBe("hi");
  expect(server.seen).toEqual(["credential 1", "credential 2"]);
  expect(failures.map(({ details }) => details.kind)).toEqual(["stale-credential"]);
  expect(records[0]).toMatchObject({ attempts: 2, outcome: "completed" });
});

test("when a renewed credential is refused too, the next target is tried", async () => {
  const server = serve(refused);
  const sound = serve(() => answer("hi"));
  const adapters = [renewing(server.url, "stale-credential"), adapterOf(sound.url)];
  const { text, records } = await run(adapters);
  expect([text, server.seen.length]).toEqual(["hi", 2]);
  expect(records[0]).toMatchObject({ attempts: 3, target: "up1/m" });
});

test("a target that is busy for the retry with a fresh credential counts as busy", async () => {
  const server = serve(refused);
  let entries = 0;
  const enter = (): EnterResult => {
    entries += 1;
    return entries === 1 ? { place: freePlace, at: 0, refused: [] } : { refused: [fullPool] };
  };
  const capacity = {
    enter,
    requestPlaces: noRequest,
    draining: () => undefined,
  };
  const { error, records } = await run([renewing(server.url, "stale-credential")], { capacity });
  expect([error?.status, server.seen.length]).toEqual([503, 1]);
  expect(error?.message).not.toContain("credential");
  expect(error?.headers["retry-after-ms"]).toBe("700");
  expect(records[0]).toMatchObject({ attempts: 1, status: 503 });
});

const noRequest = (): never => {
  throw new Error("every request is part of an attempt");
};
const freePlace = {
  waitedMs: 0,
  position: undefined,
  settle: () => undefined,
  leave: () => undefined,
  extend: (count: number) => count,
  tryOpen: () => true,
  whenOpen: () => Promise.resolve(true),
  close: () => undefined,
};
const fullPool = { busy: "full", retryAfterMs: 700, position: undefined, waitedMs: 0 } as const;

test("a wrong credential is not retried", async () => {
  const server = serve(refused);
  const { error, records } = await run([renewing(server.url, "bad-credential")]);
  expect([error?.status, server.seen.length]).toEqual([503, 1]);
  expect(records[0]).toMatchObject({ attempts: 1 });
});

test("a call is in the ledger before it is sent, and closed before the caller gets the answer", async () => {
  const ledger = new KeptLedger();
  const openedAtRequest: number[] = [];
  const sound = serve(() => {
    openedAtRequest.push(ledger.opened.length);
    return answer("hello");
  });
  const { text } = await run([adapterOf(sound.url)], { ledger });
  expect([text, openedAtRequest, ledger.closed.length]).toEqual(["hello", [1], 1]);
});

test("nothing is sent before the record of the call is written, nor told before that of its end", async () => {
  const ledger = new KeptLedger();
  const opening = Promise.withResolvers<undefined>();
  const closing = Promise.withResolvers<undefined>();
  ledger.written = opening.promise;
  const sound = serve(() => answer("hello"));
  let isTold = false;
  const running = run([adapterOf(sound.url)], { ledger }).finally(() => (isTold = true));
  await until(() => ledger.opened.length === 1);
  await Bun.sleep(20);
  expect(sound.seen).toEqual([]);
  ledger.written = closing.promise;
  opening.resolve(undefined);
  await until(() => ledger.closed.length === 1);
  await Bun.sleep(20);
  expect([sound.seen.length, isTold]).toEqual([1, false]);
  closing.resolve(undefined);
  expect((await running).text).toBe("hello");
});

test("a failed call is told of it once that is written", async () => {
  const ledger = new KeptLedger();
  const closing = Promise.withResolvers<undefined>();
  const failing = serve(() => {
    ledger.written = closing.promise;
    return down();
  });
  let isTold = false;
  const running = run([adapterOf(failing.url)], { ledger }).finally(() => (isTold = true));
  await until(() => ledger.closed.length === 1);
  await Bun.sleep(20);
  expect(isTold).toBe(false);
  closing.resolve(undefined);
  expect((await running).error?.status).toBe(503);
});

test("a call whose record cannot be written is not sent, and is accounted for", async () => {
  const ledger = new KeptLedger();
  ledger.takes = false;
  const sound = serve(() => answer("hello"));
  const { error } = await run([adapterOf(sound.url)], { ledger });
  expect([error?.status, error?.explanation?.rule]).toEqual([503, "ledger_full"]);
  expect(sound.seen).toEqual([]);
  expect(ledger.closed).toMatchObject([{ outcome: "failed", status: 503, attempts: 0 }]);
});

test("no call begins while the ledger has no room, and the refusal says why", async () => {
  const ledger = new KeptLedger();
  ledger.hasRoom = false;
  const sound = serve(() => answer("hello"));
  const { error } = await run([adapterOf(sound.url)], { ledger });
  expect([error?.status, error?.headers["retry-after"]]).toEqual([503, "5"]);
  expect(error?.explanation?.rule).toBe("ledger_full");
  expect([sound.seen, ledger.opened, ledger.closed]).toEqual([[], [], []]);
});

test("a call that the ledger refuses is refused, returns its tokens and has a row", async () => {
  const ledger = new KeptLedger();
  ledger.takes = false;
  const settled: (readonly [string, number])[] = [];
  const { limits } = pipelineOf().services;
  const sound = serve(() => answer("hello"));
  const { error } = await run([adapterOf(sound.url)], {
    ledger,
    limits: {
      process: "one",
      placeOf: (scope) => scope,
      acquire: (request) => limits.acquire(request),
      count: (scopes) => limits.count(scopes),
      uncount: () => undefined,
      use: () => undefined,
      settle: (callId, tokens) => {
        settled.push([callId, tokens]);
        return limits.settle(callId, tokens);
      },
    },
  });
  expect(error?.explanation?.rule).toBe("ledger_full");
  expect([sound.seen, settled]).toEqual([[], [["req_1", 0]]]);
  expect(ledger.closed).toMatchObject([{ outcome: "failed", status: 503, inputTokens: 0 }]);
});

test("a call refused by a limit has a row and was never opened", async () => {
  const ledger = new KeptLedger();
  const sound = serve(() => answer("hello"));
  const refuse = pipelineOf().services.limits;
  const { error } = await run([adapterOf(sound.url)], {
    ledger,
    limits: {
      process: "one",
      placeOf: (scope) => scope,
      acquire: (request) => refuse.acquire({ ...request, tokens: 10_000_000 }),
      count: (scopes) => refuse.count(scopes),
      uncount: () => undefined,
      use: () => undefined,
      settle: (callId, tokens) => refuse.settle(callId, tokens),
    },
  });
  expect([error?.status, ledger.opened]).toEqual([429, []]);
  expect(ledger.closed).toMatchObject([{ outcome: "failed", status: 429, attempts: 0 }]);
});
