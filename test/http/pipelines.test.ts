import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { RawConnection } from "./raw-connection.ts";

/** Bytes on a connection behind a call without an answer yet, and their effect on the call. */

let gateway: TestGateway;
beforeAll(async () => {
  // Slow enough that bytes in the next packet come while the call runs.
  gateway = await startGateway({ simulator: { firstTokenDelayMs: 300, tokensPerSecond: 40 } });
});
afterAll(async () => {
  expect(gateway.log.filter((line) => line.includes(`"level":"error"`))).toEqual([]);
  await gateway[Symbol.asyncDispose]();
});

const content = JSON.stringify({
  model: "chat-model",
  messages: [{ role: "user", content: "echo: one two three four five six seven eight" }],
});
const streamedContent = content.replace("{", `{"stream":true,`);
const longContent = content.replace("echo: one", `echo: ${"one ".repeat(60_000)}`);
const emptyLine = "\r\n";
const trailers = "0\r\nX-A: b\r\n\r\n";
const probe = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

function head(framing: string): string {
  return (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
    `Authorization: Bearer KEY\r\n${framing}\r\n`
  );
}

function post(body = content): string {
  return `${head(`Content-Length: ${body.length}\r\n`)}${body}`;
}

function chunked(body: string, end: string): string {
  const chunk = body === "" ? "" : `${body.length.toString(16)}\r\n${body}\r\n`;
  return `${head("Transfer-Encoding: chunked\r\n")}${chunk}${end}`;
}

function write(connection: RawConnection, packet: string): void {
  connection.write(packet.replaceAll("Bearer KEY", `Bearer ${gateway.key}`));
}

/** All requests to the upstream, and all rows of the ledger. */
async function counts(): Promise<{ readonly asked: number; readonly rows: number }> {
  const { truth, openCalls } = gateway.simulator;
  return { asked: truth.size + openCalls, rows: (await gateway.usage()).length };
}

/** The runtime refuses what it cannot read, and closes silently on a second request. */
type Ending = "400, then closed" | "closed";

async function endingOf(connection: RawConnection): Promise<string> {
  const answer = await connection.answer();
  if (answer === undefined) return "closed";
  expect(answer.headers.get("connection")).toBe("close");
  expect(await connection.answer()).toBeUndefined();
  return `${answer.status}, then closed`;
}

describe("in one packet with the call, no request goes upstream for it:", () => {
  const packets: readonly (readonly [name: string, packet: string, ending: Ending])[] = [
    ["a second call", post() + post(), "closed"],
    ["two more calls", post() + post() + post(), "closed"],
    ["a request without a body", post() + probe, "closed"],
    ["a second call behind a stream", post(streamedContent) + post(), "closed"],
    ["a second call behind a long body", post(longContent) + post(), "closed"],
    ["a second call behind chunks", chunked(content, "0\r\n\r\n") + post(), "closed"],
    ["an empty line", post() + emptyLine, "400, then closed"],
    ["an empty line behind chunks", chunked(content, "0\r\n\r\n") + emptyLine, "400, then closed"],
    ["an empty line and a second call", post() + emptyLine + post(), "400, then closed"],
    ["trailers", chunked(content, trailers), "400, then closed"],
    ["trailers of an empty body", chunked("", trailers), "400, then closed"],
    ["a trailer cut in its name", chunked(content, "0\r\nX-"), "400, then closed"],
    ["what is no HTTP", `${post()}\0\0\r\n\r\n`, "400, then closed"],
  ];
  test.each(packets)("%s", async (_, packet, ending) => {
    const before = await counts();
    using connection = await RawConnection.open(gateway.port);
    write(connection, packet);
    expect(await endingOf(connection)).toBe(ending);
    // A call of another connection is served after all requests of the first one.
    expect((await gateway.post("/v1/embeddings", embedding)).status).toBe(200);
    const after = await counts();
    expect(after).toEqual({ asked: before.asked + 1, rows: before.rows + 1 });
  });
});

const embedding = { model: "embedding-model", input: "hi" };

describe("while the call runs, it ends as left by its caller, and so does its upstream's:", () => {
  const packets: readonly (readonly [name: string, body: string, then: string])[] = [
    ["a second call", content, post()],
    ["a request without a body", content, probe],
    ["an empty line", content, emptyLine],
    ["a second call behind a stream", streamedContent, post()],
    ["an empty line behind a stream", streamedContent, emptyLine],
  ];
  test.each(packets)("%s", async (_, body, then) => {
    const before = await counts();
    using connection = await RawConnection.open(gateway.port);
    write(connection, post(body));
    const { simulator } = gateway;
    await until(() => simulator.openCalls === 1);
    if (body === streamedContent) await connection.until("data:");
    write(connection, then);
    await connection.closed();
    await until(async () => (await counts()).rows > before.rows);
    const [row] = await gateway.usage();
    expect(row).toMatchObject({ outcome: "abandoned", status: 499, code: "caller_left" });
    await until(() => simulator.openCalls === 0);
    expect(simulator.truth.entries.at(-1)).toMatchObject({ clientLeft: true });
    expect(await counts()).toEqual({ asked: before.asked + 1, rows: before.rows + 1 });
  });

  test("trailers in a packet of their own", async () => {
    using connection = await RawConnection.open(gateway.port);
    write(connection, chunked(content, "0\r\n"));
    await until(() => gateway.simulator.openCalls === 1);
    write(connection, trailers.slice(3));
    expect(await endingOf(connection)).toBe("400, then closed");
    await until(() => gateway.simulator.openCalls === 0);
    const [row] = await gateway.usage();
    expect(row).toMatchObject({ outcome: "abandoned", status: 499, code: "caller_left" });
  });
});

describe("in one packet, all are answered in order:", () => {
  const list = `GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\r\n\r\n`;
  const wrongKey = post().replace("Bearer KEY", "Bearer wrong");
  const unknownPath = post().replace("/v1/chat/completions", "/v1/nope");
  const packets: readonly (readonly [name: string, packet: string, statuses: number[]])[] = [
    ["requests that need no upstream", list + probe + list, [200, 200, 200]],
    ["a call behind one that needs no upstream", list + post(), [200, 200]],
    ["requests behind a refused key", wrongKey + wrongKey + list, [401, 401, 200]],
    ["a call behind an unknown path", unknownPath + post(), [404, 200]],
  ];
  test.each(packets)("%s", async (_, packet, statuses) => {
    using connection = await RawConnection.open(gateway.port);
    write(connection, packet);
    const answered: (number | undefined)[] = [];
    while (answered.length < statuses.length) answered.push((await connection.answer())?.status);
    expect(answered).toEqual(statuses);
  });

  test("what is behind a refusal that closes is not answered, and goes nowhere", async () => {
    const before = await counts();
    using connection = await RawConnection.open(gateway.port);
    write(connection, post().replace("application/json", "text/plain") + post());
    expect(await endingOf(connection)).toBe("415, then closed");
    expect(await counts()).toEqual(before);
  });
});

test("a part of a request behind a call waits for its rest, and both are answered in order", async () => {
  using connection = await RawConnection.open(gateway.port);
  write(connection, post() + probe.slice(0, 20));
  expect((await connection.answer())?.body).toContain("chat.completion");
  write(connection, probe.slice(20));
  expect((await connection.answer())?.body).toBe("ok\n");
});

test("the end of chunks may come in separate packets", async () => {
  for (const end of ["0\r\n\r\n", "\r\n"]) {
    using connection = await RawConnection.open(gateway.port);
    write(connection, chunked(content, "0\r\n\r\n".slice(0, -end.length)));
    await Bun.sleep(20);
    write(connection, end);
    expect((await connection.answer())?.body).toContain("chat.completion");
  }
});

test("an empty line before a request on a kept connection is refused, and no request goes upstream", async () => {
  using connection = await RawConnection.open(gateway.port);
  write(connection, post());
  expect((await connection.answer())?.status).toBe(200);
  const before = await counts();
  write(connection, emptyLine + post());
  expect(await endingOf(connection)).toBe("400, then closed");
  expect(await counts()).toEqual(before);
});

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 15_000;
  while (!(await isTrue())) {
    if (Date.now() > deadline) throw new Error("it never became true");
    await Bun.sleep(10);
  }
}
