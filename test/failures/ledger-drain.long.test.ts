import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import type { TruthEntry } from "../../simulator/simulator.ts";
import {
  simulatorUpstream,
  startGateway,
  targetAt,
  upstreamKinds,
  type TestGateway,
} from "../support/gateway.ts";
import { parseStream, streamOf } from "../support/bodies.ts";
import { until } from "../support/ledger-truth-process.ts";

describe.each(upstreamKinds)("behind an upstream of kind %s that is drained,", (kind) => {
  let gateway: TestGateway;
  beforeEach(async () => {
    gateway = await startGateway({ kind, simulator: { tokensPerSecond: 100 } });
  });
  afterEach(async () => {
    await gateway[Symbol.asyncDispose]();
  });

  async function drain(
    settings: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const model = (alias: string, name: string): string => `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [${targetAt(kind, { model: name, family: "claude-4" })}]`;
    await gateway.reconfigure({
      ...more,
      upstreams: `
  simulator: ${simulatorUpstream(gateway.simulator, kind, `drain: ${settings}`)}`,
      models: `${model("steady", "sound")}${model("silent", "fault-stall-mid")}${model("uncounted", "fault-ok-no-usage")}`,
    });
  }

  const chat = (model: string, mark: string, tokens: number) => ({
    model,
    stream: true,
    messages: [
      { role: "system", content: `mark:${mark}` },
      { role: "user", content: `count: ${tokens}` },
    ],
  });

  /** Begins a stream, reads a word of it and leaves. */
  async function leave(body: object): Promise<string> {
    const leaving = new AbortController();
    const init = { signal: leaving.signal };
    const response = await gateway.post("/v1/chat/completions", body, init);
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    for (let text = ""; !/"content":"[^"]/.test(text);) {
      const piece: Uint8Array | undefined = (await reader?.read())?.value;
      if (piece === undefined) throw new Error("the stream has no word");
      text += decoder.decode(piece);
    }
    leaving.abort();
    return response.headers.get("x-request-id") ?? "";
  }

  const untilUpstreamIsFree = (): Promise<void> =>
    until("no call is open", () => gateway.simulator.openCalls === 0);

  async function rowsById(): Promise<ReadonlyMap<string, UsageRecord>> {
    return new Map((await gateway.usage()).map((row) => [row.id, row]));
  }

  function truthOf(wanted: string): TruthEntry {
    const found = gateway.simulator.truth.entries.find(({ mark }) => mark === wanted);
    if (found === undefined) throw new Error(`no call has the mark ${wanted}`);
    return found;
  }

  test("a caller that leaves is billed the upstream's count of the whole answer", async () => {
    await drain("{ timeout: 5s }");
    const id = await leave(chat("steady", "whole", 80));
    await untilUpstreamIsFree();
    const truth = truthOf("whole");
    expect(truth).toMatchObject({ completionTokens: 80, hasUsage: true, clientLeft: false });
    await until("the row is there", async () => (await rowsById()).has(id));
    expect((await rowsById()).get(id)).toMatchObject({
      outcome: "abandoned",
      status: 499,
      usageSource: "upstream",
      inputTokens: truth.promptTokens,
      outputTokens: 80,
    });
  });

  test("an answer that does not end in time is closed, and counted as delivered", async () => {
    await drain("{ timeout: 300ms }");
    const silent = await leave(chat("silent", "silent", 50));
    const leftAt = performance.now();
    await untilUpstreamIsFree();
    const silentMs = performance.now() - leftAt;
    const long = await leave(chat("steady", "long", 5_000));
    await untilUpstreamIsFree();
    process.stdout.write(`closed ${silentMs.toFixed(0)} ms after 300 ms were allowed\n`);
    expect(silentMs).toBeGreaterThanOrEqual(250);
    const rows = await rowsById();
    for (const [id, mark] of [
      [silent, "silent"],
      [long, "long"],
    ] as const) {
      const truth = truthOf(mark);
      expect(truth).toMatchObject({ clientLeft: true });
      const row = rows.get(id);
      expect(row).toMatchObject({ outcome: "abandoned", status: 499, usageSource: "counted" });
      expect(row?.outputTokens).toBeGreaterThan(0);
      expect(row?.outputTokens).toBeLessThanOrEqual(truth.completionTokens);
    }
    // Drained text is not billed if the upstream never sent its count.
    expect(rows.get(long)?.outputTokens).toBeLessThan(truthOf("long").completionTokens);
  });

  test("an answer without a count is billed as delivered, even if it was drained", async () => {
    await drain("{ timeout: 5s }");
    const id = await leave(chat("uncounted", "uncounted", 60));
    await untilUpstreamIsFree();
    expect(truthOf("uncounted")).toMatchObject({ completionTokens: 60, hasUsage: false });
    await until("the row is there", async () => (await rowsById()).has(id));
    const row = (await rowsById()).get(id);
    expect(row).toMatchObject({ outcome: "abandoned", usageSource: "counted" });
    expect(row?.outputTokens).toBeGreaterThan(0);
    expect(row?.outputTokens).toBeLessThan(60);
  });

  test("64 answers of 80 leaving callers are drained and the others aborted", async () => {
    await drain("{ timeout: 5s }");
    const marks = Array.from({ length: 80 }, (_, index) => `m${index}`);
    const ids = await Promise.all(marks.map((mark) => leave(chat("steady", mark, 100))));
    await until("16 are aborted", () => gateway.simulator.openCalls <= 64);
    await untilUpstreamIsFree();
    await until("the rows are there", async () => (await rowsById()).size === ids.length);
    const rows = await rowsById();
    const sources = Object.groupBy(ids, (id) => rows.get(id)?.usageSource ?? "none");
    expect([sources.upstream?.length, sources.counted?.length]).toEqual([64, 16]);
    for (const [index, id] of ids.entries()) {
      const truth = truthOf(marks[index] ?? "");
      const row = rows.get(id);
      expect(row).toMatchObject({ outcome: "abandoned", status: 499 });
      expect(truth.clientLeft).toBe(row?.usageSource === "counted");
      if (row?.usageSource === "upstream") expect(row.outputTokens).toBe(100);
      expect(row?.outputTokens).toBeLessThanOrEqual(truth.completionTokens);
    }
    // The places are free again.
    const again = await leave(chat("steady", "again", 20));
    await untilUpstreamIsFree();
    await until("the row is there", async () => (await rowsById()).has(again));
    expect((await rowsById()).get(again)).toMatchObject({ usageSource: "upstream" });
  });

  test("a caller that stays is served as usual", async () => {
    await drain("{ timeout: 5s }");
    const response = await gateway.post("/v1/chat/completions", chat("steady", "stays", 20));
    const { chunks, isDone } = await streamOf(response);
    expect(isDone).toBe(true);
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toEndWith("20");
    expect([...(await rowsById()).values()]).toMatchObject([
      { outcome: "completed", usageSource: "upstream", outputTokens: 20 },
    ]);
  });

  test("callers get an error at the end of the shutdown's drain time, and nothing is drained", async () => {
    await drain("{ timeout: 5s }", { shutdown: "{ pre_stop: 0s, drain_timeout: 0s }" });
    const response = await gateway.post("/v1/chat/completions", chat("steady", "ends", 5_000));
    const reading = response.text();
    await gateway.app.drain();
    const { chunks, isDone } = parseStream(await reading);
    expect(isDone).toBe(false);
    expect(chunks.at(-1)?.error?.message).toContain("shutting down");
    expect((await gateway.usage())[0]).toMatchObject({ outcome: "failed", status: 503 });
    await untilUpstreamIsFree();
    expect(truthOf("ends").clientLeft).toBe(true);
  });
});
