import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { chatRequest, LeavingCaller } from "../support/fault-callers.ts";
import { hasSocketTable, StallWatch } from "../support/fault-sockets.ts";
import { startFaultProcess, type FaultProcess } from "../support/fault-process.ts";
import { simulatorUpstream, targetAt, upstreamKinds } from "../support/gateway.ts";
import { isComplete, sizeOf, testWhere } from "../support/requirement.ts";
import { report } from "../support/scorecard.ts";

/** What the gateway keeps of a stream is the same for all kinds, so one is enough for a quick run. */
const kinds = upstreamKinds.slice(0, isComplete ? undefined : 1);
const mebibyte = 1024 * 1024;
const readerCount = sizeOf({ quick: 40, all: 150, measured: 500 });
const writeTimeoutMs = isComplete ? 10_000 : 3_000;
/** The tolerance of the guaranteed time, because the machine may be busy. */
const promisedPrecisionMs = 2_000;
const timeoutMs = 90_000;
/** The buffers between the gateway and each reader take some megabytes before it stalls. */
const fillTimeoutMs = isComplete ? 120_000 : 30_000;
/** The guarantee for 500 readers, and so for fewer. */
const promisedBytes = 150 * mebibyte;
/**
 * The bound of the test: the runtime reads up to 512 KiB from a connection at a time, buffers as
 * much again ahead of demand, and its heap includes garbage that is not collected yet.
 */
const boundBytes = 250 * mebibyte + readerCount * 3 * mebibyte;
const pieceBytes = 16 * 1024;
/** An answer is about 200 MB long. */
const pieces = 12_800;
/** At four letters a token. */
const tokensOfAll = (pieces * pieceBytes) / 4;
/** Lets the readers limit the process, not the work of filling their buffers. */
const readerBytesPerSecond = (80 * mebibyte) / readerCount;
const othersMeanwhile = 3;
const sampleIntervalMs = 100;

describe.each(kinds)(`${readerCount} readers that never read, behind kind %s:`, (kind) => {
  let simulator: Simulator;
  let gateway: FaultProcess;
  let readers: readonly LeavingCaller[] = [];
  let rows: readonly UsageRecord[] = [];
  let grownBytes = 0;
  let heldBytes = 0;
  let openAtOnce = 0;
  const endedAtMs = new Map<string, number>();
  let watch: StallWatch | undefined;
  const meanwhile: number[] = [];

  beforeAll(async () => {
    simulator = startSimulator({
      tokensPerSecond: readerBytesPerSecond / pieceBytes,
      onTruth: ({ mark }) => endedAtMs.set(mark ?? "", performance.now()),
    });
    gateway = await startFaultProcess({
      streams: `{ write_timeout: ${writeTimeoutMs}ms, keep_alive_interval: 60s }`,
      upstreams: `
  simulator: ${simulatorUpstream(direct(simulator), kind, "timeouts: { idle: 5m }")}`,
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [${targetAt(kind, { model: "simulated-chat", family: "claude-4" })}]`,
    });
    await warmUp(gateway);
    const before = await gateway.residentBytes();
    readers = await openReaders(gateway);
    if (hasSocketTable) watch = new StallWatch(gateway.port);
    const sampling = setInterval(() => watch?.sample(), sampleIntervalMs);
    // The runtime closes the connection of an abandoned stream at its next idle timer.
    const hasOpen = (): boolean =>
      simulator.openCalls > 0 || (isComplete && watch?.hasOpen === true);
    const deadline = performance.now() + writeTimeoutMs + fillTimeoutMs;
    do {
      await Bun.sleep(sampleIntervalMs);
      const grown = (await gateway.residentBytes()) - before;
      if (simulator.openCalls === readerCount) {
        heldBytes = grown;
        if (meanwhile.length < othersMeanwhile) meanwhile.push(await statusOf(gateway));
      }
      openAtOnce = Math.max(openAtOnce, simulator.openCalls);
      grownBytes = Math.max(grownBytes, grown);
    } while (hasOpen() && performance.now() < deadline);
    clearInterval(sampling);
  }, 240_000);
  afterAll(async () => {
    for (const reader of readers) reader[Symbol.dispose]();
    await gateway[Symbol.asyncDispose]();
    await simulator[Symbol.asyncDispose]();
  });

  test("the memory of the process has a bound that does not depend on the length of answers", () => {
    const inMebibytes = (bytes: number): string => (bytes / mebibyte).toFixed(0);
    report({
      check: 19,
      name: `memory for ${readerCount} stalled readers, ${kind}`,
      value: `${inMebibytes(grownBytes)} MiB at most, ${inMebibytes(heldBytes)} MiB while all stall`,
      limit: `<= ${inMebibytes(promisedBytes)} MiB`,
      isMet: grownBytes <= promisedBytes,
    });
    expect(openAtOnce).toBe(readerCount);
    expect(grownBytes).toBeLessThanOrEqual(boundBytes);
  });

  test("other callers are served while they stall, and none of their upstream calls continues", () => {
    expect(meanwhile).toEqual(Array.from({ length: othersMeanwhile }, () => 200));
    expect(simulator.openCalls).toBe(0);
  });

  test("their connections are closed without an end of the streams", async () => {
    for (const reader of readers) reader.resume();
    const deadline = performance.now() + timeoutMs;
    while (readers.some(({ isClosed }) => !isClosed) && performance.now() < deadline) {
      await Bun.sleep(20);
    }
    expect(readers.filter(({ isClosed }) => !isClosed)).toHaveLength(0);
    expect(readers.filter(({ lastText }) => lastText.includes("[DONE]"))).toHaveLength(0);
  });

  test("each has one row as abandoned, with the delivered tokens only", async () => {
    const all = await gateway.stopAndReadRows();
    // Those of the other callers are complete.
    rows = all.filter(({ outcome }) => outcome !== "completed");
    expect(rows).toHaveLength(readerCount);
    expect(new Set(rows.map(({ outcome, status }) => `${outcome} ${status}`))).toEqual(
      new Set(["abandoned 499"]),
    );
    for (const { outputTokens } of rows) {
      expect(outputTokens).toBeGreaterThan(0);
      expect(outputTokens).toBeLessThan(tokensOfAll / 5);
    }
  });

  testWhere(hasSocketTable, "this system has no list of its connections")(
    "they were given up when they had not read for as long as is allowed",
    () => {
      const stalls = readers.map(({ localPort }) => watch?.stalls.get(localPort));
      const stalledAt = stalls.map((stall) => stall?.stalledAtMs ?? Number.NaN);
      const waits = stalledAt.map((at, index) => (endedAtMs.get(markOf(index)) ?? Number.NaN) - at);
      const [first, last] = [Math.min(...waits), Math.max(...waits)];
      const inTime = waits.filter((wait) => Math.abs(wait - writeTimeoutMs) <= promisedPrecisionMs);
      report({
        check: 19,
        name: `stalled readers given up at ${writeTimeoutMs / 1000} s, within 2 s, ${kind}`,
        value: `${inTime.length} (after ${first.toFixed(0)} to ${last.toFixed(0)} ms)`,
        limit: readerCount,
        isMet: inTime.length === readerCount,
      });
      const closed = stalls.flatMap((stall, index) => {
        return stall?.closedAtMs === undefined ? [] : stall.closedAtMs - (stalledAt[index] ?? 0);
      });
      if (closed.length > 0) {
        const latest = Math.max(...closed).toFixed(0);
        process.stdout.write(`${closed.length} connections were closed within ${latest} ms\n`);
      }
      expect(first).toBeGreaterThan(writeTimeoutMs - promisedPrecisionMs);
      expect(last).toBeLessThan(writeTimeoutMs + timeoutMs);
    },
  );
});

const markOf = (index: number): string => `reader-${index}`;

function openReaders({ port, key }: FaultProcess): Promise<readonly LeavingCaller[]> {
  return Promise.all(
    Array.from({ length: readerCount }, async (_, index) => {
      const messages = [
        { role: "system", content: `mark:${markOf(index)}` },
        { role: "user", content: `bulk: ${pieces}` },
      ];
      const request = chatRequest(key, { model: "chat-model", stream: true, messages });
      const reader = await LeavingCaller.send(port, request);
      reader.pause();
      return reader;
    }),
  );
}

/** Without the simulator's front, which would buffer some megabytes of each stream too. */
function direct(simulator: Simulator): Simulator {
  const { directUrl: url, directOrigin: origin } = simulator;
  return { ...simulator, url, origin };
}

const shortChat = {
  model: "chat-model",
  stream: true,
  messages: [{ role: "user", content: "count: 20" }],
};

async function statusOf(gateway: FaultProcess): Promise<number> {
  const answer = await gateway.post(shortChat);
  return (await answer.text()).includes("[DONE]") ? answer.status : 0;
}

/** Warms up: compiled code, pools, the first pages of the heap. */
async function warmUp(gateway: FaultProcess): Promise<void> {
  for (let round = 0; round < 8; round += 1) {
    const answers = Array.from({ length: 50 }, () => gateway.post(shortChat));
    for (const answer of await Promise.all(answers)) await answer.text();
  }
}
