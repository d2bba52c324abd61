import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import {
  simulatorUpstream,
  startGateway,
  targetAt,
  chatKinds,
  type TestGateway,
  type ChatKind,
} from "../support/gateway.ts";

const target = (kind: ChatKind, model: string): string =>
  targetAt(kind, { model, family: "claude-4" });
const fault = (kind: ChatKind, name: string): string => `
  ${name}:
    kind: chat
    context_window: 200000
    targets: [${target(kind, `fault-${name}`)}]`;

describe.each(chatKinds)("behind kind %s:", (kind) => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({
      kind,
      simulator: { tokensPerSecond: 200 },
      sections: {
        streams: "{ hold_headers: 200ms, keep_alive_interval: 1s }",
        models: `
  steady:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [${target(kind, "sound")}]
${fault(kind, "stall-mid")}${fault(kind, "slow-first-byte-60000")}`,
      },
    });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
  });

  const chat = (model: string, content: string, isStreamed = true) => ({
    model,
    stream: isStreamed,
    messages: [{ role: "user", content }],
  });

  /** Waits until the upstream has seen the end of all its calls. */
  async function untilUpstreamIsFree(): Promise<void> {
    const deadline = performance.now() + 4_000;
    while (gateway.simulator.openCalls > 0) {
      if (performance.now() > deadline) throw new Error("the upstream call goes on");
      await Bun.sleep(2);
    }
  }

  async function untilUpstreamIsBusy(calls: number): Promise<void> {
    const deadline = performance.now() + 4_000;
    while (gateway.simulator.openCalls < calls) {
      if (performance.now() > deadline) throw new Error("the upstream was never called");
      await Bun.sleep(2);
    }
  }

  async function onlyNewRow(before: ReadonlySet<string>): Promise<UsageRecord> {
    const rows = (await gateway.usage()).filter(({ id }) => !before.has(id));
    expect(rows).toHaveLength(1);
    const [row] = rows;
    if (row === undefined) throw new Error("no row");
    return row;
  }

  async function knownRows(): Promise<ReadonlySet<string>> {
    return new Set((await gateway.usage()).map(({ id }) => id));
  }

  /** Reads some pieces of a stream, then leaves. */
  async function readSome(response: Response, pieces: number): Promise<void> {
    const reader = response.body?.getReader();
    for (let piece = 0; piece < pieces; piece += 1) await reader?.read();
  }

  test("a caller that leaves mid-stream ends the upstream call and is billed for what it got", async () => {
    const before = await knownRows();
    const leaving = new AbortController();
    const body = chat("steady", "count: 100000");
    const response = await gateway.post("/v1/chat/completions", body, { signal: leaving.signal });
    await readSome(response, 5);
    leaving.abort();
    await untilUpstreamIsFree();
    const truth = gateway.simulator.truth.entries.at(-1);
    expect(truth?.clientLeft).toBe(true);
    const row = await onlyNewRow(before);
    expect(row).toMatchObject({ outcome: "abandoned", status: 499, usageSource: "counted" });
    expect(row.outputTokens).toBeGreaterThan(0);
    expect(row.outputTokens).toBeLessThanOrEqual(truth?.completionTokens ?? 0);
    expect(row.inputTokens).toBeGreaterThan(0);
  });

  test("a caller that leaves before the first event ends the upstream call", async () => {
    const before = await knownRows();
    const leaving = new AbortController();
    const body = chat("slow-first-byte-60000", "hi", false);
    const calling = gateway.post("/v1/chat/completions", body, { signal: leaving.signal });
    await untilUpstreamIsBusy(1);
    leaving.abort();
    expect(calling).rejects.toThrow();
    await untilUpstreamIsFree();
    const row = await onlyNewRow(before);
    expect(row).toMatchObject({ outcome: "abandoned", status: 499, outputTokens: 0, attempts: 1 });
    expect(row.inputTokens).toBeGreaterThan(0);
  });

  test("a caller that leaves after the headers went out early ends the upstream call", async () => {
    const before = await knownRows();
    const leaving = new AbortController();
    const body = chat("slow-first-byte-60000", "hi");
    const response = await gateway.post("/v1/chat/completions", body, { signal: leaving.signal });
    expect(response.status).toBe(200);
    expect(gateway.simulator.openCalls).toBe(1);
    leaving.abort();
    await untilUpstreamIsFree();
    expect(await onlyNewRow(before)).toMatchObject({ outcome: "abandoned", outputTokens: 0 });
  });

  test("a caller that leaves a silent stream ends the upstream call", async () => {
    const before = await knownRows();
    const leaving = new AbortController();
    const body = chat("stall-mid", "count: 100");
    const response = await gateway.post("/v1/chat/completions", body, { signal: leaving.signal });
    await readSome(response, 1);
    leaving.abort();
    await untilUpstreamIsFree();
    expect(await onlyNewRow(before)).toMatchObject({ outcome: "abandoned", status: 499 });
  });

  test("a call is complete if its caller leaves right after the last event", async () => {
    const before = await knownRows();
    const leaving = new AbortController();
    const body = chat("steady", "count: 3");
    const response = await gateway.post("/v1/chat/completions", body, { signal: leaving.signal });
    let text = "";
    const decoder = new TextDecoder();
    const reader = response.body?.getReader();
    while (!text.includes("[DONE]")) {
      const piece: Uint8Array | undefined = (await reader?.read())?.value;
      text += decoder.decode(piece);
    }
    leaving.abort();
    await untilUpstreamIsFree();
    expect(await onlyNewRow(before)).toMatchObject({
      outcome: "completed",
      status: 200,
      usageSource: "upstream",
    });
  });

  test.skipIf(kind === "anthropic")(
    "a caller that leaves embeddings ends every batch of them",
    async () => {
      const more = kind === "openai" ? "embedding_batch_limit: 1" : "";
      const slow = { model: "fault-slow-first-byte-60000", family: "titan-embed-v2" };
      await using local = await startGateway({
        kind,
        sections: {
          upstreams: `
  batches: ${simulatorUpstream(gateway.simulator, kind, more)}`,
          models: `
  vectors:
    kind: embedding
    context_window: 8192
    fan_out: 3
    targets: [${targetAt(kind, slow, "upstream: batches")}]`,
        },
      });
      const leaving = new AbortController();
      const body = { model: "vectors", input: ["a", "b", "c", "d", "e"] };
      const calling = local.post("/v1/embeddings", body, { signal: leaving.signal });
      await untilUpstreamIsBusy(3);
      expect(gateway.simulator.openCalls).toBe(3);
      leaving.abort();
      expect(calling).rejects.toThrow();
      await untilUpstreamIsFree();
      const rows = await local.usage();
      expect(rows).toHaveLength(1);
      expect(rows[0]).toMatchObject({ outcome: "abandoned", status: 499 });
    },
  );
});
