import { describe, expect, test } from "bun:test";
import type { Simulator } from "../../simulator/simulator.ts";
import { errorOf, parseStream, streamOf } from "../support/bodies.ts";
import {
  simulatorUpstream,
  startGateway,
  targetAt,
  upstreamKinds,
  type UpstreamKind,
} from "../support/gateway.ts";

const modelsOf = (kind: UpstreamKind, upstreamModel: string): string => `
  chat-model:
    kind: chat
    context_window: 200000
    targets: [${targetAt(kind, { model: upstreamModel, family: "claude-4" })}]`;

const hanging = "fault-slow-first-byte-60000";

const chat = (content: string) => ({
  model: "chat-model",
  stream: true,
  messages: [{ role: "user", content }],
});

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  const models = (upstreamModel: string): string => modelsOf(kind, upstreamModel);
  const upstreamsOf = (simulator: Simulator): string => `
  simulator: ${simulatorUpstream(simulator, kind, "timeouts: { connect: 100ms, first_byte: 400ms }")}`;

  test("a slow reader gets everything", async () => {
    await using gateway = await startGateway({
      kind,
      sections: { streams: "{ write_timeout: 1s }", models: models("fault-million-chunks-3000") },
    });
    const response = await gateway.post("/v1/chat/completions", chat("hi"));
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (let isOver = false; !isOver;) {
      const read = await reader?.read();
      const piece: Uint8Array | undefined = read?.value;
      text += decoder.decode(piece, { stream: true });
      isOver = read?.done ?? true;
      await Bun.sleep(1);
    }
    const { chunks, isDone } = parseStream(text);
    expect(isDone).toBe(true);
    expect(chunks.length).toBeGreaterThan(3_000);
  });

  test("comments fill silence before and within an answer", async () => {
    await using gateway = await startGateway({
      kind,
      simulator: { tokensPerSecond: 2 },
      sections: {
        streams: "{ hold_headers: 50ms, keep_alive_interval: 1s }",
        models: models("fault-slow-first-byte-2500"),
      },
    });
    const response = await gateway.post("/v1/chat/completions", chat("echo: one"));
    const { comments, chunks, isDone } = await streamOf(response);
    expect(isDone).toBe(true);
    expect(chunks.length).toBeGreaterThan(1);
    expect(comments.length).toBeGreaterThanOrEqual(2);
    expect(new Set(comments)).toEqual(new Set([": keep-alive"]));
  });

  test("an empty chunk can replace the comment", async () => {
    await using gateway = await startGateway({
      kind,
      sections: {
        streams: "{ hold_headers: 50ms, keep_alive: chunk }",
        models: models("fault-slow-first-byte-300"),
      },
    });
    const response = await gateway.post("/v1/chat/completions", chat("echo: one"));
    const { comments, chunks } = await streamOf(response);
    expect(comments).toEqual([]);
    expect(chunks[0]?.choices).toEqual([]);
    expect(chunks[1]?.choices[0]?.delta.role).toBe("assistant");
  });

  test("a failure after the headers went out early is one error frame", async () => {
    await using other = await startGateway({ kind });
    await using gateway = await startGateway({
      kind,
      sections: {
        streams: "{ hold_headers: 100ms }",
        models: models(hanging),
        upstreams: upstreamsOf(other.simulator),
      },
    });
    const response = await gateway.post("/v1/chat/completions", chat("hi"));
    expect(response.status).toBe(200);
    const { chunks, isDone } = await streamOf(response);
    expect(isDone).toBe(false);
    expect(chunks).toHaveLength(1);
    expect(chunks[0]?.error).toMatchObject({ code: "model_unavailable", type: "server_error" });
  });

  test("a failure while the headers are held is a proper HTTP error, also without keep-alives", async () => {
    await using other = await startGateway({ kind });
    for (const streams of ["{ hold_headers: 10s }", "{ hold_headers: 50ms, keep_alive: off }"]) {
      const upstreams = upstreamsOf(other.simulator);
      const sections = { streams, models: models(hanging), upstreams };
      await using gateway = await startGateway({ kind, sections });
      const response = await gateway.post("/v1/chat/completions", chat("hi"));
      expect(response.status).toBe(503);
      expect((await errorOf(response)).code).toBe("model_unavailable");
    }
  });
});
