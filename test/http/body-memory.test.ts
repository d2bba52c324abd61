import { afterAll, beforeAll, expect, test } from "bun:test";
import { errorOf } from "../support/bodies.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { errorShapeProblem } from "./error-shape.ts";
import { RawConnection } from "./raw-connection.ts";

const KiB = 1024;
const path = "/v1/chat/completions";
/** A refused body that stalls is waited for. */
const patienceMs = 30_000;

let gateway: TestGateway;
let other: string;
beforeAll(async () => {
  gateway = await startGateway({
    sections: {
      http:
        "{ body_limit: 512KiB, decompressed_limit: 512KiB, body_memory: 4MiB, " +
        "body_memory_per_key: 2MiB, body_memory_wait: 1s, body_timeout: 30s }",
    },
  });
  other = (await gateway.createKey({ account: "other" })).text;
});
afterAll(() => gateway[Symbol.asyncDispose]());

function bodyOf(bytes: number): string {
  const call = { model: "chat-model", messages: [{ role: "user", content: "echo: hi" }] };
  return JSON.stringify(call).padEnd(bytes, " ");
}

/** Sends a part of a body. */
async function stall(key: string, sentBytes: number): Promise<RawConnection> {
  const connection = await RawConnection.open(gateway.port);
  connection.write(
    `POST ${path} HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer ${key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${500 * KiB}\r\n\r\n` +
      bodyOf(500 * KiB).slice(0, sentBytes),
  );
  return connection;
}

function send(key: string, bytes: number): Promise<Response> {
  const headers = { authorization: `Bearer ${key}` };
  return gateway.post(path, bodyOf(bytes), { headers });
}

test(
  "stalled bodies of a key use its own memory, and no other key's",
  async () => {
    using first = await stall(gateway.key, 400 * KiB);
    using second = await stall(gateway.key, 400 * KiB);
    using third = await stall(gateway.key, 400 * KiB);
    // One has no room; its bytes stay in the system's buffers until then.
    const stalled = [first, second, third];
    const answer = await Promise.race(stalled.map((connection) => connection.answer()));
    expect(answer?.status).toBe(503);
    expect(answer?.headers.get("retry-after")).toBe("2");
    expect(answer && errorShapeProblem(answer.headers, answer.body)).toBeUndefined();
    const refused = await send(gateway.key, 400 * KiB);
    expect([refused.status, (await errorOf(refused)).code]).toEqual([503, "model_unavailable"]);
    expect((await send(other, 400 * KiB)).status).toBe(200);
    expect((await send(gateway.key, 1 * KiB)).status).toBe(200);
    expect(stalled.filter(({ isClosed }) => !isClosed).length).toBe(2);
  },
  patienceMs,
);

test("a waiting body continues when another one ends", async () => {
  const first = await stall(gateway.key, 400 * KiB);
  using second = await stall(gateway.key, 400 * KiB);
  const waiting = send(gateway.key, 400 * KiB);
  await Bun.sleep(100);
  first[Symbol.dispose]();
  expect((await waiting).status).toBe(200);
  expect(second.isClosed).toBeFalse();
});

test(
  "bodies of all keys together use the memory of all",
  async () => {
    const accounts = ["one", "two", "three"];
    const keys = await Promise.all(accounts.map((account) => gateway.createKey({ account })));
    const stalled = await Promise.all(
      keys.flatMap(({ text }) => [stall(text, 450 * KiB), stall(text, 450 * KiB)]),
    );
    const statuses: (number | undefined)[] = [];
    for (const connection of stalled) {
      void connection.answer().then((answer) => statuses.push(answer?.status));
    }
    // Four bodies reserve 3.9 of 4 MiB.
    while (statuses.length < 2) await Bun.sleep(10);
    expect(statuses).toEqual([503, 503]);
    for (const connection of stalled) connection[Symbol.dispose]();
    await Bun.sleep(50);
    expect((await send(other, 500 * KiB)).status).toBe(200);
  },
  patienceMs,
);

/** On the wire: with its length, or as one chunk of unknown length. */
function wireOf(
  key: string,
  { length, isChunked }: { length: number; isChunked: boolean },
): string {
  const body = bodyOf(length);
  const size = length.toString(16);
  return (
    `POST ${path} HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer ${key}\r\n` +
    "Content-Type: application/json\r\n" +
    (isChunked
      ? `Transfer-Encoding: chunked\r\n\r\n${size}\r\n${body}\r\n0\r\n\r\n`
      : `Content-Length: ${length}\r\n\r\n${body}`)
  );
}

test.each([
  ["of known length", false],
  ["of unknown length", true],
])("bodies %s that arrive together do not wait for each other", async (_, isChunked) => {
  await using patient = await startGateway({
    sections: {
      http:
        "{ body_limit: 512KiB, decompressed_limit: 512KiB, body_memory: 4MiB, " +
        "body_memory_per_key: 2MiB, body_memory_wait: 20s }",
    },
  });
  const wire = wireOf(patient.key, { length: 500 * KiB, isChunked });
  const connections = await Promise.all(
    Array.from({ length: 6 }, () => RawConnection.open(patient.port)),
  );
  // A part of each, so that all together are more than the key may hold.
  for (const connection of connections) connection.write(wire.slice(0, 250 * KiB));
  await Bun.sleep(200);
  for (const connection of connections) connection.write(wire.slice(250 * KiB));
  const answers = await Promise.all(connections.map((connection) => connection.answer()));
  expect(answers.map((answer) => answer?.status)).toEqual(answers.map(() => 200));
  for (const connection of connections) connection[Symbol.dispose]();
});

test("small bodies never wait for the memory of others", async () => {
  const accounts = ["one", "two", "three"];
  const keys = await Promise.all(accounts.map((account) => gateway.createKey({ account })));
  const stalled = await Promise.all(
    keys.flatMap(({ text }) => [stall(text, 450 * KiB), stall(text, 450 * KiB)]),
  );
  await Bun.sleep(100);
  using chunked = await RawConnection.open(gateway.port);
  chunked.write(wireOf(other, { length: 200, isChunked: true }));
  const gzipped = fetch(`http://127.0.0.1:${gateway.port}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${other}`,
      "content-type": "application/json",
      "content-encoding": "gzip",
    },
    body: Bun.gzipSync(bodyOf(200)),
  });
  const answers = [send(other, 200), send(other, 64 * KiB), gzipped, chunked.answer()];
  for (const answer of await Promise.all(answers)) expect(answer?.status).toBe(200);
  for (const connection of stalled) connection[Symbol.dispose]();
});
