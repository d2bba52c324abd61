import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { errorShapeProblem } from "./error-shape.ts";
import { RawConnection, type RawAnswer } from "./raw-connection.ts";

/** How long connections are kept for their next request, and which limits that must not extend. */

const hello = JSON.stringify({
  model: "chat-model",
  messages: [{ role: "user", content: "echo: hi" }],
});
const probe = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

function head(key: string, framing: string): string {
  return (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
    `Authorization: Bearer ${key}\r\n${framing}\r\n`
  );
}

function call(key: string, body = hello): string {
  return head(key, `Content-Length: ${body.length}\r\n`) + body;
}

async function answered(port: number, request: string): Promise<RawConnection> {
  const connection = await RawConnection.open(port);
  connection.write(request);
  expect(await connection.answer()).toBeDefined();
  return connection;
}

/** Sends one thing, then another again and again until the connection is closed. */
async function dribble(port: number, first: string, then: string): Promise<RawAnswer | undefined> {
  using connection = await RawConnection.open(port);
  connection.write(first);
  const timer = setInterval(() => connection.write(then), 200);
  try {
    await connection.closed();
    return await connection.answer();
  } finally {
    clearInterval(timer);
  }
}

describe("with the default idle time", () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ sections: { http: "{ body_timeout: 2s }" } });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test("idle connections outlive slow headers and slow bodies, which have their own bounds", async () => {
    const { port, key } = gateway;
    const kept = await Promise.all(
      [probe, call(key), call(key, hello.replace("{", `{"stream":true,`)), call("nobody")].map(
        (request) => answered(port, request),
      ),
    );
    const chunks = "Transfer-Encoding: chunked\r\n";
    const ends = await Promise.all([
      dribble(port, "", ""),
      dribble(port, "GET /healthz HTTP/1.1\r\n", "X-A: b\r\n"),
      dribble(port, head(key, "Content-Length: 100000\r\n"), " "),
      dribble(port, head(key, chunks), "1\r\n \r\n"),
      dribble(port, head("nobody", chunks), "1\r\n \r\n"),
      dribble(port, head(key, "Content-Length: 99999999\r\n"), " "),
    ]);
    const statuses = [undefined, undefined, 408, 408, 401, 413];
    expect(ends.map((answer) => answer?.status)).toEqual(statuses);
    const [, , late] = ends;
    expect(errorShapeProblem(late?.headers ?? new Headers(), late?.body ?? "")).toBeUndefined();
    // All of this ends within 12 s, as would idle connections with an idle time of 10 s.
    await Bun.sleep(4_500);
    for (const connection of kept) {
      connection.write(probe);
      expect((await connection.answer())?.body).toBe("ok\n");
      connection[Symbol.dispose]();
    }
  }, 180_000);

  test("answers on a kept connection have the time for which it may be used again", async () => {
    const { port, key } = gateway;
    for (const request of [probe, call(key), call(key, hello.replace("{", `{"stream":true,`))]) {
      using connection = await RawConnection.open(port);
      connection.write(request);
      const answer = await connection.answer();
      expect(answer?.headers.get("connection")).toBe("keep-alive");
      expect(answer?.headers.get("keep-alive")).toBe("timeout=70");
    }
  });

  test("answers on a connection that is then closed have `Connection: close`", async () => {
    const { port, key } = gateway;
    const requests = [
      probe.replace("Host: a\r\n", "Host: a\r\nConnection: close\r\n"),
      probe.replace("Host: a\r\n", "Host: a\r\nConnection: Close, TE\r\n"),
      head(key, "Content-Length: 100\r\n").replace("application/json", "text/plain"),
    ];
    for (const request of requests) {
      using connection = await RawConnection.open(port);
      connection.write(request);
      const answer = await connection.answer();
      expect(answer?.headers.get("connection")).toBe("close");
      expect(answer?.headers.has("keep-alive")).toBe(false);
      await connection.closed();
    }
  });
});

describe("with an idle time of four seconds", () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ sections: { http: "{ idle_timeout: 4s }" } });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test("a connection is kept for no less than that, and then closed", async () => {
    // The runtime's timers are looked at every four seconds, the first time after the first of these.
    const lived = async (delayMs: number): Promise<number> => {
      await Bun.sleep(delayMs);
      const beganAt = performance.now();
      using connection = await answered(gateway.port, probe);
      await connection.closed();
      return performance.now() - beganAt;
    };
    const times = await Promise.all([0, 1_000, 2_000, 3_000].map(lived));
    expect(Math.min(...times)).toBeGreaterThanOrEqual(4_000);
  }, 180_000);

  test("slow headers behind an answer have the rest of that time, even if bytes keep coming", async () => {
    const first = `${probe}GET /healthz HTTP/1.1\r\n`;
    expect((await dribble(gateway.port, first, "X-A: b\r\n"))?.body).toBe("ok\n");
  }, 180_000);

  test("the rest of a body that was refused unread has as long", async () => {
    const first = head("nobody", "Content-Length: 100000\r\n");
    expect((await dribble(gateway.port, first, " "))?.status).toBe(401);
  }, 180_000);
});
