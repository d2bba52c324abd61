import { metricsOf } from "../support/metrics-of.ts";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { Random } from "../../simulator/answer/random.ts";
import type { TruthEntry } from "../../simulator/simulator.ts";
import { chatRequest, LeavingCaller, percentile, type Leaving } from "../support/fault-callers.ts";
import {
  startGateway,
  targetAt,
  unlimited,
  upstreamKinds,
  type TestGateway,
  type UpstreamKind,
} from "../support/gateway.ts";
import { isComplete } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";

/** Callers on both wires; a third of them leave before there is a call. */
const callerCount = isComplete ? 1_600 : 300;
const callersAtOnce = 16;
const tokensPerSecond = 50;
const limitMs = 50;
/** The bound of the test, generous because the machine may be busy. */
const busyLimitMs = 1_000;
const orphanDeadlineMs = 5_000;

/** The stage of the call at which a caller leaves. */
const stages = [
  "while it sends its headers",
  "while it sends its body",
  "before the headers of a plain answer",
  "before the headers of a stream",
  "after headers that went out early",
  "in the middle of a stream",
] as const;
type Stage = (typeof stages)[number];
const ways: readonly Leaving[] = ["FIN", "RST"];

interface Seen {
  readonly stage: Stage;
  readonly how: Leaving;
  /** From the caller's close to the upstream's; undefined without an upstream call. */
  readonly closedAfterMs: number | undefined;
  readonly truth: TruthEntry | undefined;
}

const allLatencies: number[] = [];
/** The delay of a timer in this process, which runs callers, gateway and upstreams. */
const latenesses: number[] = [];
const tickMs = 5;
let allOrphans = 0;

describe.each(upstreamKinds)("behind kind %s:", (kind) => {
  let gateway: TestGateway;
  let seen: readonly Seen[];
  let rows: readonly UsageRecord[];
  const ended = new Map<string, { readonly atMs: number; readonly entry: TruthEntry }>();

  beforeAll(async () => {
    gateway = await startGateway({
      kind,
      simulator: {
        tokensPerSecond,
        onTruth: (entry) => ended.set(entry.mark ?? "", { atMs: performance.now(), entry }),
      },
      sections: {
        telemetry: "{ log_level: error, log_format: json }",
        streams: "{ hold_headers: 250ms }",
        models: modelsOf(kind),
      },
    });
    let dueAtMs = performance.now() + tickMs;
    const ticking = setInterval(() => {
      latenesses.push(performance.now() - dueAtMs);
      dueAtMs = performance.now() + tickMs;
    }, tickMs);
    seen = await leaveAll(gateway, ended);
    clearInterval(ticking);
    const deadline = performance.now() + orphanDeadlineMs;
    while (gateway.simulator.openCalls > 0 && performance.now() < deadline) await Bun.sleep(5);
    allOrphans += gateway.simulator.openCalls;
    rows = await gateway.usage();
  }, 120_000);
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
  });

  const reached = (): readonly Seen[] => seen.filter(({ truth }) => truth !== undefined);

  test("no upstream call continues without its caller", () => {
    expect(gateway.simulator.openCalls).toBe(0);
    const entries = gateway.simulator.truth.entries;
    expect(entries.filter(({ clientLeft }) => !clientLeft)).toEqual([]);
    expect(entries).toHaveLength(reached().length);
  });

  test("the upstream's connection is closed right after the caller's", () => {
    const latencies = reached().flatMap(({ closedAfterMs }) => closedAfterMs ?? []);
    allLatencies.push(...latencies);
    expect(latencies.length).toBeGreaterThan(callerCount / upstreamKinds.length / 2);
    expect(percentile(latencies, 0.99)).toBeLessThan(busyLimitMs);
  });

  test("every call has a row as abandoned, and only calls have rows", () => {
    const made = seen.filter(({ stage }) => !stage.startsWith("while it sends"));
    // On a busy machine a caller may leave before its request was read.
    expect(rows.length).toBeGreaterThanOrEqual(reached().length);
    expect(rows.length).toBeLessThanOrEqual(made.length);
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
    expect(rows.filter(({ outcome, status }) => outcome !== "abandoned" || status !== 499)).toEqual(
      [],
    );
  });

  test("callers left in both ways, at every stage", () => {
    const counts = new Set(seen.map(({ stage, how }) => `${how} ${stage}`));
    expect(counts.size).toBe(stages.length * ways.length);
    const asked = new Set(reached().map(({ stage }) => stage));
    expect([...asked].toSorted()).toEqual(stages.slice(2).toSorted());
    expect(reached().some(({ truth }) => (truth?.completionTokens ?? 0) > 0)).toBe(true);
  });

  test("nothing stays open or reserved", async () => {
    const text = await metricsOf(gateway.adminUrl);
    expect(text).toMatch(/^sluice_open_requests 0$/m);
    const messages = [{ role: "user", content: "count: 1" }];
    const next = await gateway.post("/v1/chat/completions", { model: "steady", messages });
    await next.text();
    const left = Number(next.headers.get("x-ratelimit-remaining-tokens"));
    const used = rows.reduce((sum, row) => sum + row.inputTokens + row.outputTokens, 0);
    // Only what the calls have used and what this one reserves.
    expect(unlimited.tokensPerMinute - left).toBeLessThan(used + 2_000);
  });
});

test("all upstream calls of callers that left were closed in time", () => {
  const p99 = percentile(allLatencies, 0.99);
  const figures = [0.5, 0.99, 1].map((part) => percentile(allLatencies, part).toFixed(1));
  const late = percentile(latenesses, 0.99).toFixed(1);
  process.stdout.write(
    `callers leaving: p50, p99 and max ${figures.join(", ")} ms; timers were late by ${late} ms, p99\n`,
  );
  report({
    check: 18,
    name: `upstream closed after ${allLatencies.length} callers left, p99`,
    value: `${p99.toFixed(1)} ms`,
    limit: `<= ${limitMs} ms`,
    isMet: p99 <= limitMs,
  });
  report({
    check: 18,
    name: "upstream calls without a caller",
    value: allOrphans,
    limit: 0,
    isMet: allOrphans === 0,
  });
  expect(allOrphans).toBe(0);
});

function modelsOf(kind: UpstreamKind): string {
  const modelAt = (alias: string, model: string): string => `
  ${alias}:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [${targetAt(kind, { model, family: "claude-4" })}]`;
  return modelAt("silent", "fault-slow-first-byte-60000") + modelAt("steady", "simulated-chat");
}

type EndedCalls = ReadonlyMap<string, { readonly atMs: number; readonly entry: TruthEntry }>;

/** Runs callers concurrently; they leave one after the other. */
async function leaveAll(gateway: TestGateway, ended: EndedCalls): Promise<readonly Seen[]> {
  const random = new Random(20_260_105);
  const count = callerCount / upstreamKinds.length;
  const seen: Seen[] = [];
  let begun = 0;
  const callUntilDone = async (): Promise<void> => {
    while (begun < count) {
      begun += 1;
      const stage = stages[begun % stages.length] ?? stages[0];
      const how = ways[Math.floor(begun / stages.length) % ways.length] ?? "FIN";
      const delayMs = random.integer(40, 140);
      seen.push(await leaveOnce({ stage, how, delayMs, mark: `leaver-${begun}` }, gateway, ended));
    }
  };
  await Promise.all(Array.from({ length: callersAtOnce }, callUntilDone));
  return seen;
}

interface Leaver {
  readonly stage: Stage;
  readonly how: Leaving;
  readonly delayMs: number;
  readonly mark: string;
}

async function leaveOnce(leaver: Leaver, gateway: TestGateway, ended: EndedCalls): Promise<Seen> {
  const { stage, how, delayMs, mark } = leaver;
  using caller = await LeavingCaller.send(gateway.port, bytesOf(stage, mark, gateway.key));
  if (stage === "in the middle of a stream") await caller.received(bytesOfSomeChunks);
  if (stage === "after headers that went out early") await caller.received(1);
  await Bun.sleep(delayMs);
  if (caller.isClosed) throw new Error(`${mark} was closed early: ${caller.lastText}`);
  const leftAtMs = performance.now();
  caller.leave(how);
  if (stage.startsWith("while it sends")) return { ...leaver, ...nobodyAsked };
  while (!ended.has(mark)) {
    if (performance.now() > leftAtMs + orphanDeadlineMs) return { ...leaver, ...nobodyAsked };
    await Bun.sleep(2);
  }
  const end = ended.get(mark);
  return { ...leaver, closedAfterMs: (end?.atMs ?? 0) - leftAtMs, truth: end?.entry };
}

const nobodyAsked = { closedAfterMs: undefined, truth: undefined };
const bytesOfSomeChunks = 1_500;

function bytesOf(stage: Stage, mark: string, key: string): string {
  const isSilent = stage !== "in the middle of a stream";
  const request = chatRequest(key, {
    model: isSilent ? "silent" : "steady",
    stream: stage !== "before the headers of a plain answer",
    messages: [
      { role: "system", content: `mark:${mark}` },
      { role: "user", content: "count: 1000" },
    ],
  });
  switch (stage) {
    case "while it sends its headers":
      return request.slice(0, request.indexOf("Content-Type"));
    case "while it sends its body":
      return request.slice(0, -20);
    case "before the headers of a plain answer":
    case "before the headers of a stream":
    case "after headers that went out early":
    case "in the middle of a stream":
      return request;
  }
}
