import { describe, expect, test } from "bun:test";
import { startSimulator } from "./simulator.ts";
import type { TruthEntry } from "./call.ts";

const streamed = (say: string) => ({
  method: "POST",
  body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: say }] }),
});

describe("the truth log", () => {
  test("keeps the newest calls, up to its limit", async () => {
    await using simulator = startSimulator({ truthLogLimit: 3 });
    for (let call = 0; call < 8; call++) {
      const headers = { "x-request-id": `call-${call}` };
      await (await fetch(`${simulator.url}/models`, { headers })).text();
    }
    expect(simulator.truth.size).toBe(3);
    const ids = simulator.truth.entries.map((entry) => entry.requestId);
    expect(ids).toEqual(["call-5", "call-6", "call-7"]);
  });

  test("can be read and cleared over HTTP", async () => {
    await using simulator = startSimulator();
    const base = simulator.url.replace("/v1", "");
    await (await fetch(`${simulator.url}/chat/completions`, streamed("count: 3"))).text();
    expect(await (await fetch(`${base}/truth`)).json()).toMatchObject({
      entries: [{ kind: "chat", model: "m", status: 200, completionTokens: 3, isStreamed: true }],
    });
    expect((await fetch(`${base}/truth`, { method: "DELETE" })).status).toBe(204);
    expect(simulator.truth.entries).toEqual([]);
    expect(await (await fetch(`${base}/healthz`)).json()).toEqual({ status: "ok" });
  });

  test("has the mark in the texts of a call", async () => {
    await using simulator = startSimulator();
    for (const say of ["count: 1 mark:w7-12, please", "count: 1"]) {
      await (await fetch(`${simulator.url}/chat/completions`, streamed(say))).text();
    }
    expect(simulator.truth.entries.map(({ mark }) => mark)).toEqual(["w7-12", null]);
  });

  test("has the callers that left and the tokens sent until then", async () => {
    const left = Promise.withResolvers<TruthEntry>();
    await using simulator = startSimulator({ tokensPerSecond: 200, onTruth: left.resolve });
    const leaving = new AbortController();
    const init = { ...streamed("count: 100000"), signal: leaving.signal };
    const response = await fetch(`${simulator.url}/chat/completions`, init);
    const reader = response.body?.getReader();
    for (let read = 0; read < 3; read++) await reader?.read();
    expect(simulator.openCalls).toBe(1);
    leaving.abort();
    const entry = await left.promise;
    expect(entry.clientLeft).toBe(true);
    expect(entry.completionTokens).toBeGreaterThanOrEqual(1);
    expect(entry.completionTokens).toBeLessThan(100_000);
    expect(simulator.openCalls).toBe(0);
  });

  test("counts no tokens for a caller that leaves before the first one", async () => {
    const left = Promise.withResolvers<TruthEntry>();
    await using simulator = startSimulator({ firstTokenDelayMs: 60_000, onTruth: left.resolve });
    const leaving = new AbortController();
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hello" }] });
    const call = fetch(`${simulator.url}/chat/completions`, {
      method: "POST",
      body,
      signal: leaving.signal,
    }).catch(() => "left");
    while (simulator.openCalls === 0) await new Promise((resolve) => setImmediate(resolve));
    leaving.abort();
    expect(await call).toBe("left");
    expect(await left.promise).toMatchObject({ clientLeft: true, completionTokens: 0 });
  });

  test("shows that a caller that does not read stops the writing", async () => {
    const { promise: left, resolve } = Promise.withResolvers<TruthEntry>();
    const onTruth = (entry: TruthEntry): void => (entry.clientLeft ? resolve(entry) : undefined);
    await using simulator = startSimulator({ onTruth });
    const init = streamed("count: 100000");
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: simulator.port,
      socket: { data: (own) => own.pause(), error: () => {} },
    });
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: s\r\ncontent-length: ${init.body.length}\r\n\r\n${init.body}`,
    );
    while (simulator.openCalls === 0) await new Promise((turn) => setImmediate(turn));
    // The same answer to a caller that reads gives the first one enough time.
    await (await fetch(`${simulator.url}/chat/completions`, init)).arrayBuffer();
    const [read] = simulator.truth.entries;
    expect(read?.completionTokens).toBe(100_000);
    expect(simulator.openCalls).toBe(1);
    socket.terminate();
    const entry = await left;
    expect(entry?.completionTokens).toBeLessThan(100_000);
  });
});
