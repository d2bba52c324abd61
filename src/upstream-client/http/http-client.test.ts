import { describe, expect, test } from "bun:test";
import {
  clientHarness,
  nextPiece,
  piecesOf,
  textOf,
} from "../../../test/support/client-harness.ts";
import { rawServer, type RawPeer } from "../../../test/support/raw-server.ts";

const ok = (body: string, more = ""): string =>
  `HTTP/1.1 200 OK\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;

/** Answers each request with its number on its connection. */
const counting = (peer: RawPeer): void =>
  peer.write(ok(`${peer.index}.${peer.requests.length - 1}`));

async function failureOf(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
    return "none";
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return "stage" in error && "code" in error
      ? `${String(error.stage)}: ${String(error.code)}`
      : error.message;
  }
}

async function until(what: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!what()) {
    if (Date.now() > end) throw new Error("it does not happen");
    await Bun.sleep(2);
  }
}

describe("a request", () => {
  test("is written with its headers, its length and its body, in one piece", async () => {
    using server = rawServer({ onRequest: counting });
    const { ask } = clientHarness();
    const headers = { "content-type": "application/json", authorization: "Bearer k" };
    await ask(`${server.url}/v1/a%20b?c=d#e`, { headers, body: '{"a":"é"}' });
    expect(server.peers[0]?.requests).toEqual([
      "POST /v1/a%20b?c=d HTTP/1.1\r\n" +
        `host: localhost:${server.port}\r\n` +
        "content-type: application/json\r\nauthorization: Bearer k\r\n" +
        "user-agent: sluice\r\naccept: */*\r\ncontent-length: 10\r\n\r\n" +
        Buffer.from('{"a":"é"}').toString("latin1"),
    ]);
  });

  test("cannot carry a second one in its headers or its path", async () => {
    using server = rawServer({ onRequest: counting });
    const { send } = clientHarness();
    const refused = [
      { a: "b\r\nc: d" },
      { "a: b\r\nc": "d" },
      { a: "\0" },
      { a: "é" },
      { "": "a" },
    ];
    for (const headers of [...refused, { "Transfer-Encoding": "chunked" }]) {
      expect(await failureOf(send(server.url, { headers }).answer)).toBe(
        "connecting: InvalidRequest",
      );
    }
    const headers = { "content-length": "0", "transfer-encoding": "chunked", host: "other" };
    await textOf(await send(server.url, { headers }).answer);
    expect(server.peers[0]?.requests[0]).not.toMatch(/transfer-encoding|other|content-length: 0/);
  });

  test("of many megabytes arrives whole, in text or bytes", async () => {
    const hash = (text: string): string => Bun.hash(text).toString();
    using server = rawServer({
      onRequest: (peer, request) => peer.write(ok(hash(request.split("\r\n\r\n")[1] ?? ""))),
    });
    const { ask } = clientHarness();
    for (const body of [`${"aé😀".repeat(700_000)}!`, "b".repeat(65_536), "b".repeat(65_537)]) {
      const bytes = Buffer.from(body);
      const wanted = hash(bytes.toString("latin1"));
      expect((await ask(server.url, { body })).text).toBe(wanted);
      expect((await ask(server.url, { body: bytes })).text).toBe(wanted);
    }
    expect(server.peers).toHaveLength(1);
  });

  test("that is answered before it was read leaves its connection unused", async () => {
    using server = rawServer({
      onBytes(peer) {
        if (peer.index > 0 || peer.received !== "") return;
        peer.stopReading();
        peer.write(ok("too large"));
      },
      onRequest: counting,
    });
    const { ask } = clientHarness();
    expect((await ask(server.url, { body: "a".repeat(30_000_000) })).text).toBe("too large");
    expect((await ask(server.url)).text).toBe("1.0");
  });
});

describe("an answer", () => {
  test.each([
    [301, "Location: http://127.0.0.1:1/\r\n"],
    [307, "Location: /elsewhere\r\n"],
  ])("of status %d is not followed", async (status, line) => {
    using server = rawServer({
      onRequest: (peer) => peer.write(`HTTP/1.1 ${status} X\r\n${line}Content-Length: 0\r\n\r\n`),
    });
    const { ask } = clientHarness();
    expect((await ask(server.url)).status).toBe(status);
    expect(server.peers[0]?.requests).toHaveLength(1);
  });

  test("is not decompressed", async () => {
    const packed = Buffer.from(Bun.gzipSync(Buffer.from("hello")));
    using server = rawServer({
      onRequest(peer) {
        peer.write(
          `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`,
        );
        peer.write(packed);
      },
    });
    const { send } = clientHarness();
    const response = await send(server.url).answer;
    expect(Buffer.concat(await piecesOf(response))).toEqual(packed);
  });

  test("that has come whole is taken at once; one that has not is read", async () => {
    using server = rawServer({
      onRequest(peer, request) {
        if (request.startsWith("POST /whole")) return peer.write(ok("hello"));
        void peer.writeSlowly([ok("hello").slice(0, -2), "lo"]);
      },
    });
    const { send } = clientHarness();
    const whole = await send(`${server.url}/whole`).answer;
    expect(Buffer.from(whole.arrived() ?? []).toString()).toBe("hello");
    expect(whole.arrived()).toBeUndefined();
    const slow = await send(`${server.url}/slow`).answer;
    expect(slow.arrived()).toBeUndefined();
    expect(await textOf(slow)).toBe("hello");
  });

  test("whose bytes all come alone is read like any other, and so is the next", async () => {
    const text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    using server = rawServer({ onRequest: (peer) => void peer.writeSlowly(Array.from(text)) });
    const { ask } = clientHarness();
    expect((await ask(server.url)).text).toBe("hello");
    expect((await ask(server.url)).text).toBe("hello");
    expect(server.peers).toHaveLength(1);
  });

  test("without a length ends with its connection, unless that is reset", async () => {
    using server = rawServer({
      onRequest(peer, request) {
        peer.write("HTTP/1.1 200 OK\r\n\r\nhello");
        setTimeout(() => (request.startsWith("POST /reset") ? peer.reset() : peer.end()), 20);
      },
    });
    const { ask } = clientHarness();
    expect((await ask(server.url)).text).toBe("hello");
    expect(await failureOf(ask(`${server.url}/reset`))).toBe("answering: ECONNRESET");
  });

  test("is held back at its server while nobody reads it", async () => {
    const total = 64 * 1024 * 1024;
    using server = rawServer({
      onRequest(peer) {
        peer.write(`HTTP/1.1 200 OK\r\nContent-Length: ${total}\r\n\r\n`);
        peer.write(new Uint8Array(total));
      },
    });
    const { send } = clientHarness();
    const response = await send(server.url).answer;
    let waiting = -1;
    while (waiting !== server.peers[0]?.waitingBytes) {
      waiting = server.peers[0]?.waitingBytes ?? 0;
      await Bun.sleep(300);
    }
    expect(waiting).toBeGreaterThan(total / 2);
    let size = 0;
    for (const piece of await piecesOf(response)) size += piece.byteLength;
    expect(size).toBe(total);
    // The connection is read again, and can be used.
    expect((await send(server.url, { method: "GET" }).answer).status).toBe(200);
  });
});

describe("a connection", () => {
  test("carries one request after another, the one used last first", async () => {
    using server = rawServer({ onRequest: counting });
    const { ask, send } = clientHarness();
    for (const name of ["0.0", "0.1", "0.2"]) expect((await ask(server.url)).text).toBe(name);
    const both = await Promise.all([send(server.url).answer, send(server.url).answer]);
    expect((await Promise.all(both.map(textOf))).toSorted()).toEqual(["0.3", "1.0"]);
  });

  test("is not used again when the server says so, or sends more than an answer", async () => {
    const odd = [
      ok("a", "Connection: close\r\n"),
      `${ok("a")}garbage`,
      `${ok("a")}${ok("smuggled")}`,
      "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
    ];
    for (const text of odd) {
      using server = rawServer({
        onRequest: (peer) => (peer.index === 0 ? peer.write(text) : counting(peer)),
      });
      const { ask } = clientHarness();
      expect((await ask(server.url)).text).toBe("a");
      expect((await ask(server.url)).text).toBe("1.0");
      await server.peers[0]?.closed;
    }
  });

  test("is closed when something comes that nobody asked for", async () => {
    using server = rawServer({ onRequest: counting });
    const { ask } = clientHarness();
    await ask(server.url);
    server.peers[0]?.write(ok("smuggled"));
    await server.peers[0]?.closed;
    expect((await ask(server.url)).text).toBe("1.0");
  });

  test("that the server closed while it was idle is not used", async () => {
    using server = rawServer({ onRequest: counting });
    const { ask, send } = clientHarness();
    await ask(server.url);
    server.peers[0]?.end();
    await server.peers[0]?.closed;
    await Bun.sleep(20);
    const { answer, told } = send(server.url);
    expect(await textOf(await answer)).toBe("1.0");
    expect(told).toEqual(["connecting", "connected"]);
  });

  test.each(["closes", "resets"])(
    "that the server %s when the next request comes was dead, and the request is sent on a new one",
    async (how) => {
      using server = rawServer({
        onRequest(peer) {
          if (peer.requests.length === 1) return counting(peer);
          if (how === "resets") peer.reset();
          else peer.end();
        },
      });
      const { ask } = clientHarness();
      expect((await ask(server.url)).text).toBe("0.0");
      expect((await ask(server.url)).text).toBe("1.0");
      expect((await ask(server.url)).text).toBe("2.0");
    },
  );

  test("that was dead makes room for the new one, where only one is allowed", async () => {
    using server = rawServer({
      onRequest: (peer) => (peer.requests.length === 1 ? counting(peer) : peer.reset()),
    });
    const { ask } = clientHarness({ mostConnections: 1 });
    const texts: string[] = [];
    for (let call = 0; call < 5; call += 1) texts.push((await ask(server.url)).text);
    expect(texts).toEqual(["0.0", "1.0", "2.0", "3.0", "4.0"]);
    const several = await Promise.all([ask(server.url), ask(server.url), ask(server.url)]);
    expect(several.map(({ text }) => text).toSorted()).toEqual(["5.0", "6.0", "7.0"]);
  });

  test("that is dead under a large body costs nothing either", async () => {
    const body = "x".repeat(2_000_000);
    using server = rawServer({
      onRequest: (peer) => counting(peer),
      onBytes(peer) {
        if (peer.index === 0 && peer.requests.length === 1) peer.reset();
      },
    });
    const { ask } = clientHarness();
    await ask(server.url);
    expect((await ask(server.url, { body })).text).toBe("1.0");
  });

  test("that is new, or whose answer had begun, is told apart: the request may have run", async () => {
    using server = rawServer({
      onRequest(peer, request) {
        if (request.startsWith("POST /first")) return counting(peer);
        if (request.startsWith("POST /begun")) peer.write("HTTP");
        peer.end();
      },
    });
    const { send } = clientHarness();
    expect(await failureOf(send(server.url).answer)).toBe("unanswered: ConnectionClosed");
    await textOf(await send(`${server.url}/first`).answer);
    expect(await failureOf(send(`${server.url}/begun`).answer)).toContain("closed before");
    expect(server.peers.map(({ requests }) => requests.length)).toEqual([1, 2]);
  });

  test("that took long to close under a request had it", async () => {
    using server = rawServer({
      onRequest: (peer) => (peer.requests.length === 1 ? counting(peer) : undefined),
    });
    const { ask, send, passTime } = clientHarness();
    await ask(server.url);
    const { answer } = send(server.url);
    await until(() => server.peers[0]?.requests.length === 2);
    passTime(5_000);
    server.peers[0]?.end();
    expect(await failureOf(answer)).toBe("unanswered: ConnectionClosed");
    expect(server.peers).toHaveLength(1);
  });

  test.each([
    ["has been idle for too long", 60_000, ""],
    ["is idle for longer than its server says", 4_500, "Keep-Alive: timeout=5, max=100\r\n"],
  ])("that %s is not used", async (_, ms, line) => {
    using server = rawServer({
      onRequest: (peer) => peer.write(ok(`${peer.index}`, line)),
    });
    const { ask, passTime } = clientHarness();
    expect((await ask(server.url)).text).toBe("0");
    passTime(ms / 2);
    expect((await ask(server.url)).text).toBe("0");
    passTime(ms);
    expect((await ask(server.url)).text).toBe("1");
    await server.peers[0]?.closed;
  });

  test("that is old carries no further request, however busy it is", async () => {
    using server = rawServer({ onRequest: (peer) => peer.write(ok(`${peer.index}`)) });
    const { ask, passTime } = clientHarness({ connections: { ageMs: 10_000 } });
    const seen = [];
    for (let index = 0; index < 5; index += 1) {
      seen.push((await ask(server.url)).text);
      passTime(4_000);
    }
    expect(seen).toEqual(["0", "0", "0", "1", "1"]);
  });

  test("that is old carries none that waits for it", async () => {
    using server = rawServer({});
    const { ask, passTime } = clientHarness({
      mostConnections: 1,
      connections: { ageMs: 10_000 },
    });
    const answers = [ask(server.url), ask(server.url)];
    for (const index of [0, 1]) {
      await until(() => server.peers[index]?.requests.length === 1);
      passTime(11_000);
      server.peers[index]?.write(ok(`${index}`));
    }
    expect((await Promise.all(answers)).map(({ text }) => text)).toEqual(["0", "1"]);
  });

  test("beyond the limit of idle ones is closed", async () => {
    using server = rawServer({ onRequest: counting });
    const { send } = clientHarness({ connections: { mostIdle: 2 } });
    const sent = Array.from({ length: 5 }, () => send(server.url).answer);
    for (const response of await Promise.all(sent)) await textOf(response);
    await until(() => server.peers.filter(({ isClosed }) => isClosed).length === 3);
  });

  test("closes at once when its request is cancelled, at any time", async () => {
    using server = rawServer({
      onRequest(peer, request) {
        if (request.startsWith("POST /begun")) peer.write("HTTP/1.1 200 OK\r\n\r\nhello");
      },
    });
    const { send } = clientHarness();
    const silent = send(server.url);
    await until(() => server.peers[0]?.requests.length === 1);
    silent.cancel();
    expect(await failureOf(silent.answer)).toBe("unanswered: Cancelled");
    await server.peers[0]?.closed;
    const begun = send(`${server.url}/begun`);
    const response = await begun.answer;
    await nextPiece(response);
    const read = failureOf(nextPiece(response));
    begun.cancel();
    expect(await read).toBe("answering: Cancelled");
    await server.peers[1]?.closed;
    const early = send(server.url);
    early.cancel();
    expect(await failureOf(early.answer)).toBe("unanswered: Cancelled");
  });

  test("cancelled after its end is kept", async () => {
    using server = rawServer({ onRequest: counting });
    const { send } = clientHarness();
    const { answer, cancel } = send(server.url);
    await textOf(await answer);
    cancel();
    expect(await textOf(await send(server.url).answer)).toBe("0.1");
  });

  test("that is refused, or to a name that there is not, fails before anything is sent", async () => {
    const { send } = clientHarness();
    expect(await failureOf(send("http://127.0.0.1:1/").answer)).toBe("connecting: ECONNREFUSED");
    expect(await failureOf(send("http://no-such.invalid/").answer)).toBe("connecting: ENOTFOUND");
    expect(await failureOf(send("ftp://127.0.0.1/").answer)).toContain("HTTP");
  });
});

describe("the limit of connections", () => {
  test("makes requests wait for one another, and none is lost", async () => {
    using server = rawServer({ onRequest: (peer) => void setTimeout(() => counting(peer), 5) });
    const { ask } = clientHarness({ mostConnections: 3 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(server.url)));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(server.peers).toHaveLength(3);
  });

  test("takes idle connections of other servers first", async () => {
    using one = rawServer({ onRequest: counting });
    using other = rawServer({ onRequest: counting });
    const { ask } = clientHarness({ mostConnections: 1 });
    for (let round = 0; round < 3; round += 1) {
      expect((await ask(one.url)).text).toBe(`${round}.0`);
      expect((await ask(other.url)).text).toBe(`${round}.0`);
    }
  });

  test("is freed by requests that fail or are cancelled", async () => {
    using server = rawServer({
      onRequest: (peer, request) => (request.startsWith("POST /hang") ? undefined : counting(peer)),
    });
    const { ask, send } = clientHarness({ mostConnections: 1 });
    const hanging = send(`${server.url}/hang`);
    const waiting = ask(server.url);
    const refused = failureOf(send("http://127.0.0.1:1/").answer);
    await until(() => server.peers[0]?.requests.length === 1);
    hanging.cancel();
    expect(await failureOf(hanging.answer)).toBe("unanswered: Cancelled");
    expect((await waiting).status).toBe(200);
    expect(await refused).toBe("connecting: ECONNREFUSED");
    expect((await ask(server.url)).status).toBe(200);
  });

  test("is shared by servers in turn, however many requests wait for one", async () => {
    using busy = rawServer({ onRequest: (peer) => void setTimeout(() => counting(peer), 5) });
    using other = rawServer({ onRequest: counting });
    const { ask } = clientHarness({ mostConnections: 2 });
    const ended: string[] = [];
    const note = async (url: string, name: string): Promise<void> => {
      await ask(url);
      ended.push(name);
    };
    const asking = Array.from({ length: 20 }, () => note(busy.url, "busy"));
    await Promise.all([...asking, note(other.url, "other")]);
    expect(ended.indexOf("other")).toBeLessThan(10);
    expect(busy.peers.length).toBeLessThan(6);
  });

  test("is passed on by a server that needs no connection any more", async () => {
    using one = rawServer({});
    using other = rawServer({ onRequest: counting });
    using third = rawServer({ onRequest: counting });
    const { ask, send } = clientHarness({ mostConnections: 1 });
    const hanging = send(one.url);
    const left = send(other.url);
    const waiting = ask(third.url);
    for (const { answer, cancel } of [left, hanging]) {
      cancel();
      expect(await failureOf(answer)).toBe("unanswered: Cancelled");
    }
    expect((await waiting).text).toBe("0.0");
  });
});
