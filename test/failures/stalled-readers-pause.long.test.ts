import { describe, expect, test } from "bun:test";
import { chatRequest, LeavingCaller } from "../support/fault-callers.ts";
import {
  simulatorUpstream,
  startGateway,
  targetAt,
  upstreamKinds,
  type UpstreamKind,
} from "../support/gateway.ts";

/** Longer than the upstream may be silent, and shorter than a reader may stall. */
const pauseMs = 5_000;
const timeouts = "timeouts: { connect: 1s, first_byte: 5s, idle: 2s }";
/** More than 20 MB, so that no buffer on the way holds all of it. */
const pieces = 1_500;
const pausingReaders = 6;
const timeoutMs = 20_000;

const chat = (content: string) => ({
  model: "chat-model",
  stream: true,
  messages: [{ role: "user", content }],
});

const modelsOf = (kind: UpstreamKind): string => `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets:
      - ${targetAt(kind, { model: "simulated-chat", family: "claude-4" })}
      - ${targetAt(kind, { model: "simulated-other", family: "claude-4" }, "upstream: simulator, priority: 2")}`;

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  test("readers that pause get everything, and their pause is no failure of the target", async () => {
    await using gateway = await startGateway({
      kind,
      sections: {
        streams: "{ write_timeout: 20s, keep_alive_interval: 60s }",
        // Any failure would count against the target.
        routing: "{ out: { failures: 1, first: 60s, longest: 60s } }",
        models: modelsOf(kind),
      },
    });
    await gateway.reconfigure({
      upstreams: `
  simulator: ${simulatorUpstream(gateway.simulator, kind, timeouts)}`,
    });
    const readers = await Promise.all(
      Array.from({ length: pausingReaders }, async () => {
        const request = chatRequest(gateway.key, chat(`bulk: ${pieces}`));
        const reader = await LeavingCaller.send(gateway.port, request);
        reader.pause();
        return reader;
      }),
    );
    await Bun.sleep(pauseMs);
    expect(gateway.simulator.openCalls).toBe(pausingReaders);
    for (const reader of readers) reader.resume();
    const deadline = performance.now() + timeoutMs;
    const isRead = (reader: LeavingCaller): boolean => reader.lastText.includes("data: [DONE]");
    while (!readers.every(isRead) && performance.now() < deadline) await Bun.sleep(10);
    for (const reader of readers) expect(reader.lastText).toContain("data: [DONE]");
    for (const reader of readers) reader[Symbol.dispose]();

    const after = await gateway.post("/v1/chat/completions", chat("count: 3"));
    expect(await after.text()).toContain("[DONE]");
    const rows = await gateway.usage();
    expect(rows).toHaveLength(pausingReaders + 1);
    const ends = rows.map(({ outcome, attempts, target }) => `${outcome} ${attempts} ${target}`);
    expect(new Set(ends)).toEqual(new Set(["completed 1 simulator/simulated-chat"]));
  }, 180_000);
});
