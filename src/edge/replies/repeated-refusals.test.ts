import { afterEach, describe, expect, test } from "bun:test";
import { callerOf, snapshotOf } from "../../../test/support/pipeline-fixtures.ts";
import { openAiDialect } from "../../dialects/openai-dialect.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { PreparedRefusals } from "./repeated-refusals.ts";
import { RawConnection } from "../../../test/http/raw-connection.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { createNetworkList } from "../../domain/network.ts";
import { CorsPolicy } from "../cors.ts";
import { createDispatch } from "../dispatch/dispatch.ts";
import type { HandledRequest } from "../../domain/handled-request.ts";
import { listen, type Listener } from "../listen.ts";
import { jsonReply } from "./error-reply.ts";
import { RouteTable } from "../dispatch/route-table.ts";
import { bodyLimitsOf } from "../../../test/support/body-limits.ts";

const usual = callerOf();
const callerNamed = (id: string) => ({ ...usual, key: { ...usual.key, id } });
const limited = new GatewayError("rate_limit_exceeded", { message: "Too many." });

test("a refusal of a key holds for the rest of its second, and for no other key", () => {
  const repeated = new PreparedRefusals(openAiDialect);
  const caller = callerNamed("a");
  expect(repeated.ofKey("call", caller, 5_100)).toBeUndefined();
  repeated.keepOfKey({ kind: "call", caller }, limited, 5_100);
  expect(repeated.ofKey("call", caller, 5_999)?.error).toBe(limited);
  expect(repeated.ofKey("call", callerNamed("b"), 5_999)).toBeUndefined();
  expect(repeated.ofKey("listing", caller, 5_999)).toBeUndefined();
  const raised = { ...caller, limits: { ...caller.limits } };
  expect(repeated.ofKey("call", raised, 5_999)).toBeUndefined();
  expect(repeated.ofKey("call", caller, 6_000)).toBeUndefined();
});

test("a refusal of a key is not repeated once its `retry-after-ms` is over", () => {
  const repeated = new PreparedRefusals(openAiDialect);
  const headers = { "retry-after-ms": "300" };
  const soon = new GatewayError("rate_limit_exceeded", { message: "Too many.", headers });
  repeated.keepOfKey({ kind: "call", caller: usual }, soon, 5_100);
  expect(repeated.ofKey("call", usual, 5_399)?.error).toBe(soon);
  expect(repeated.ofKey("call", usual, 5_400)).toBeUndefined();
});

test("an address with many wrong keys in one second gets an answer that names none of them", () => {
  const repeated = new PreparedRefusals(openAiDialect);
  const answers = Array.from({ length: 30 }, () => repeated.ofAddress("192.0.2.1", 5_000));
  expect(answers.slice(0, 20).every((each) => each === undefined)).toBe(true);
  expect(answers.slice(20).map((each) => each?.reply.status)).toEqual(
    Array.from({ length: 10 }, () => 401),
  );
  expect(repeated.ofAddress("192.0.2.2", 5_000)).toBeUndefined();
  expect(repeated.ofAddress("192.0.2.1", 6_000)).toBeUndefined();
});

test("memory stays bounded however many keys and addresses are refused in one second", () => {
  const repeated = new PreparedRefusals(openAiDialect);
  for (let index = 0; index < 20_000; index += 1) {
    repeated.keepOfKey({ kind: "call", caller: callerNamed(`${index}`) }, limited, 1_000);
    repeated.ofAddress(`address ${index}`, 1_000);
  }
  expect(repeated.ofKey("call", callerNamed("9999"), 1_000)).toBeDefined();
  expect(repeated.ofKey("call", callerNamed("10000"), 1_000)).toBeUndefined();
  const late = Array.from({ length: 30 }, () => repeated.ofAddress("address 19999", 1_000));
  expect(late.every((each) => each === undefined)).toBe(true);
});

let listener: Listener | undefined;
afterEach(() => listener?.cut());

function start() {
  const overload = { refuses: true, asked: 0, wait: undefined as Promise<void> | undefined };
  const handled: HandledRequest[] = [];
  const lengths: number[] = [];
  let requests = 0;
  const edge = {
    cors: new CorsPolicy([]),
    bodyLimits: bodyLimitsOf(),
    maxHeaders: 100,
    trustedProxies: createNetworkList([]),
  };
  const handle = createDispatch({
    routes: new RouteTable([
      {
        method: "POST",
        path: "/v1/chat/completions",
        access: "key",
        dialect: openAiDialect,
        counts: "call",
        handle: async (call) => {
          lengths.push((await call.readBody()).byteLength);
          return jsonReply({});
        },
      },
      { method: "GET", path: "/healthz", access: "public", handle: () => jsonReply({}) },
    ]),
    clock: new ManualClock({ wallMs: 5_000 }),
    newRequestId: () => `req_${(requests += 1)}`,
    keyed: {
      snapshot: () => ({
        ...snapshotOf(["up"]),
        defaultEnvironment: { name: "test", models: new Map() },
      }),
      authenticate: () => () => callerOf(),
      overload: {
        refusesUnread() {
          overload.asked += 1;
          return overload.refuses;
        },
        get answersAfter() {
          return overload.wait;
        },
      },
    },
    edge: () => edge,
    shutdown: { closesConnections: false, isRefusing: false },
    onHandled: (event) => handled.push(event),
  });
  listener = listen({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeoutMs: 5_000,
    handle,
    onError: () => new Response(null, { status: 500 }),
  });
  return { overload, handled, lengths, port: Number(new URL(listener.url).port) };
}

const head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";

function callOf(bodyBytes: number): string {
  return `${head}content-length: ${bodyBytes}\r\n\r\n${"x".repeat(bodyBytes)}`;
}

describe("a call that is shed", () => {
  test("gets 503 with a retry-after, and its body is not read", async () => {
    const { handled, lengths, port } = start();
    using connection = await RawConnection.open(port);
    connection.write(callOf(20));
    const answer = await connection.answer("POST");
    expect(answer?.status).toBe(503);
    expect(JSON.parse(answer?.body ?? "")).toMatchObject({
      error: { type: "server_error", code: "model_unavailable" },
    });
    expect(answer?.headers.get("x-request-id")).toBe("req_1");
    expect(answer?.headers.get("x-should-retry")).toBe("true");
    expect(Number(answer?.headers.get("retry-after-ms"))).toBeWithin(1_000, 2_001);
    expect(lengths).toEqual([]);
    expect(handled).toHaveLength(1);
    expect(handled[0]).toMatchObject({
      status: 503,
      route: "/v1/chat/completions",
      refusal: { id: "req_1", at: 5_000, explanation: { rule: "overloaded", keyId: "key_a" } },
    });
  });

  test("keeps its connection for a body of any length, and the next call is answered", async () => {
    const { overload, lengths, port } = start();
    using connection = await RawConnection.open(port);
    for (const bytes of [20, 300_000, 3_000_000, 0]) {
      connection.write(callOf(bytes));
      const answer = await connection.answer("POST");
      expect([answer?.status, answer?.headers.get("connection")]).toEqual([503, "keep-alive"]);
    }
    overload.refuses = false;
    connection.write(callOf(123));
    expect((await connection.answer("POST"))?.status).toBe(200);
    expect(lengths).toEqual([123]);
  });

  test("closes its connection when its body has no declared length", async () => {
    const { port } = start();
    using connection = await RawConnection.open(port);
    connection.write(`${head}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n`);
    const answer = await connection.answer("POST");
    expect([answer?.status, answer?.headers.get("connection")]).toEqual([503, "close"]);
  });

  test("is answered no sooner than the loop has time for answers", async () => {
    const { overload, handled, port } = start();
    const turn = Promise.withResolvers<void>();
    overload.wait = turn.promise;
    using connection = await RawConnection.open(port);
    connection.write(callOf(20));
    while (overload.asked === 0) await Bun.sleep(1);
    await Bun.sleep(20);
    expect(handled).toEqual([]);
    turn.resolve();
    expect((await connection.answer("POST"))?.status).toBe(503);
    expect(handled[0]?.refusal?.explanation.rule).toBe("overloaded");
  });

  test("does not affect health checks of the process", async () => {
    const { overload, port } = start();
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect([answer.status, overload.asked]).toEqual([200, 0]);
  });
});

test("the first hundred refusals of a second are recorded", () => {
  const replies = new PreparedRefusals(openAiDialect);
  const kept = [10_000, 10_500, 11_000].map(
    (now) => Array.from({ length: 80 }, () => replies.isExplained(now)).filter(Boolean).length,
  );
  expect(kept).toEqual([80, 20, 80]);
});

test("callers get different retry times, so they do not all retry at once", () => {
  const replies = new PreparedRefusals(openAiDialect);
  const times = Array.from({ length: 64 }, () =>
    Number(replies.nextShed().reply.headers["retry-after-ms"]),
  );
  expect(new Set(times).size).toBe(64);
  expect([Math.min(...times), Math.max(...times)]).toEqual([1_000, 2_000]);
  // Neighbours in time are not neighbours in the order of calls.
  const steps = times.slice(1).map((time, index) => Math.abs(time - (times[index] ?? 0)));
  expect(Math.min(...steps)).toBeGreaterThan(100);
});
