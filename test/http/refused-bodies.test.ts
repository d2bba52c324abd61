import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { errorShapeProblem } from "./error-shape.ts";
import { RawConnection } from "./raw-connection.ts";

/** A caller that is still writing its body when it is refused gets the refusal. */

const MiB = 1024 * 1024;
const path = "/v1/chat/completions";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    sections: {
      http:
        "{ body_limit: 2MiB, decompressed_limit: 2MiB, body_memory: 32MiB, body_memory_per_key: 16MiB, " +
        "body_memory_wait: 0s }",
    },
  });
});
afterAll(() => gateway[Symbol.asyncDispose]());

interface Sent {
  readonly target?: string;
  readonly key?: string;
  readonly headers?: string;
  readonly bytes: number;
  readonly isChunked?: boolean;
  /** After the first piece. */
  readonly pauseMs?: number;
}

/** Like most clients, writes all of its request before it reads. */
function exchange(sent: Sent) {
  const { target = path, key, headers = "", bytes, isChunked = false, pauseMs = 0 } = sent;
  const type = headers.includes("Content-Type") ? "" : "Content-Type: application/json\r\n";
  const framing = isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${bytes}`;
  const head =
    `POST ${target} HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer ${key ?? gateway.key}\r\n` +
    `${type}${headers}${framing}\r\n\r\n`;
  return new Promise<{ status: number; headers: Headers; text: string }>((resolve, reject) => {
    const socket = connect(gateway.port, "127.0.0.1");
    socket.on("error", reject);
    void (async () => {
      await write(socket, Buffer.from(head));
      const piece = Buffer.alloc(64 * 1024, "x");
      for (let at = 0; at < bytes; at += piece.length) {
        if (isChunked) await write(socket, Buffer.from(`${piece.length.toString(16)}\r\n`));
        await write(socket, piece);
        if (isChunked) await write(socket, Buffer.from("\r\n"));
        if (at === 0) await Bun.sleep(pauseMs);
      }
      if (isChunked) await write(socket, Buffer.from("0\r\n\r\n"));
      const received: Buffer[] = [];
      socket.on("data", (data: Buffer) => {
        received.push(data);
        const text = Buffer.concat(received).toString().replace(continues, "");
        const end = text.indexOf("\r\n\r\n");
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
        if (end === -1 || text.length < end + 4 + length) return;
        const fields = text.slice(0, end).split("\r\n").slice(1);
        const pairs = fields.map((line) => line.split(/:\s*/, 2) as [string, string]);
        resolve({
          status: Number(text.slice(9, 12)),
          headers: new Headers(pairs),
          text: text.slice(end + 4),
        });
        socket.destroy();
      });
      socket.on("end", () => reject(new Error("closed without an answer")));
    })().catch(reject);
  });
}

const continues = "HTTP/1.1 100 Continue\r\n\r\n";

/** Node does not read while it waits here. */
function write(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

describe("a refusal reaches whoever still writes:", () => {
  const cases: readonly (readonly [name: string, status: number, sent: Sent])[] = [
    ["a wrong key", 401, { key: "wrong", bytes: 6 * MiB }],
    ["a wrong key, in chunks", 401, { key: "wrong", bytes: 6 * MiB, isChunked: true }],
    [
      "a wrong key, of a client that closes",
      401,
      { key: "wrong", bytes: MiB, headers: "Connection: close\r\n" },
    ],
    [
      "a wrong key, of a client that expects 100",
      401,
      { key: "wrong", bytes: 6 * MiB, headers: "Expect: 100-continue\r\n" },
    ],
    ["an unknown path", 404, { target: "/v1/nope", bytes: 6 * MiB }],
    ["a wrong method", 405, { target: "/v1/models", bytes: 6 * MiB, isChunked: true }],
    ["a bad path", 400, { target: "/v1//models", bytes: 6 * MiB }],
    ["a wrong content type", 415, { bytes: MiB, headers: "Content-Type: text/plain\r\n" }],
    ["a coding that nobody knows", 415, { bytes: MiB, headers: "Content-Encoding: lzma\r\n" }],
    ["too large", 413, { bytes: 6 * MiB }],
    ["too large, in chunks", 413, { bytes: 6 * MiB, isChunked: true }],
  ];
  test.each(cases)("%s is %d", async (_, status, sent) => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => exchange(sent)));
    for (const answer of answers) {
      expect(answer.status).toBe(status);
      expect(errorShapeProblem(answer.headers, answer.text)).toBeUndefined();
      expect(answer.headers.get("connection")).toBe("close");
    }
  });

  test("a wrong key, of a caller that stops writing for a second is 401", async () => {
    expect((await exchange({ key: "wrong", bytes: 20 * MiB, pauseMs: 1_500 })).status).toBe(401);
  });

  test("a key above its limit is 429", async () => {
    const limits = { requestsPerMinute: 1, tokensPerMinute: 1_000_000 };
    const { text: key } = await gateway.createKey({ limits });
    await exchange({ key, bytes: 0 });
    for (const isChunked of [false, true]) {
      expect((await exchange({ key, bytes: 1.5 * MiB, isChunked })).status).toBe(429);
    }
  });

  test("bodies without memory are 503", async () => {
    const held = await Promise.all([1, 2, 3, 4].map(() => RawConnection.open(gateway.port)));
    for (const connection of held) {
      connection.write(
        `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${gateway.key}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${2 * MiB}\r\n\r\n{`,
      );
    }
    while ((await exchange({ bytes: MiB })).status !== 503) await Bun.sleep(5);
    expect((await exchange({ bytes: MiB, isChunked: true })).status).toBe(503);
    for (const connection of held) connection[Symbol.dispose]();
  });
});

test("a body that the control plane refuses is read, too", async () => {
  const answer = await fetch(`${gateway.adminUrl}/admin/v1/keys`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "x".repeat(20 * MiB),
  });
  expect(answer.status).toBe(401);
});

test("what is discarded is bounded: a body without an end is cut, and a caller that pauses is answered", async () => {
  using endless = await RawConnection.open(gateway.port);
  const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wrong\r\n`;
  endless.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
  const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
  while (!endless.isClosed) {
    endless.write(chunk);
    await Bun.sleep(1);
  }
  using paused = await RawConnection.open(gateway.port);
  paused.write(`${head}Content-Length: ${6 * MiB}\r\n\r\nhello`);
  expect((await paused.answer())?.status).toBe(401);
  using declared = await RawConnection.open(gateway.port);
  declared.write(`${head}Content-Length: ${100 * MiB}\r\n\r\nhello`);
  expect((await declared.answer())?.status).toBe(401);
  await declared.closed();
});
