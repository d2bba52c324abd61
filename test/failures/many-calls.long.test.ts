import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync, readdirSync } from "node:fs";
import { ProcessBench, untilStored } from "../support/ledger-truth-process.ts";
import { sizeOf } from "../support/requirement.ts";
import { type ServingProcess } from "../support/sluice-process.ts";

const calls = sizeOf({ quick: 10_000, all: 100_000, measured: 1_000_000 });
const callers = 16;
/** Samples of a run; the first tenth warms up. */
const samples = 50;
/** More than a heap swings between two collections; 1,000,000 calls that leak 100 bytes leave more. */
const swingBytes = 64 * 1024 * 1024;
/** Of connections that come and go. */
const swingFiles = 2 * callers;

let bench: ProcessBench;
let serving: ServingProcess;
beforeEach(async () => {
  bench = await ProcessBench.create({ keys: 1, simulator: { truthLogLimit: 1 } });
  serving = await bench.serve();
});
afterEach(async () => {
  await serving[Symbol.asyncDispose]();
  await bench[Symbol.asyncDispose]();
});

interface Held {
  readonly bytes: number;
  readonly files: number;
}

/** Of a process. */
function heldBy(pid: number): Held {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
  return { bytes: pages * 4_096, files: readdirSync(`/proc/${pid}/fd`).length };
}

async function callMany(count: number): Promise<void> {
  let left = count;
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const isStreamed = left % 4 === 0;
      const messages = [{ role: "user", content: "count: 3" }];
      const body = { model: "chat-openai", messages, stream: isStreamed };
      const response = await bench.fetch(serving, { path: "/v1/chat/completions", body });
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
}

function most(held: readonly Held[], what: keyof Held): number {
  return Math.max(...held.map((one) => one[what]));
}

test(`${calls} calls leave no memory and no descriptor`, async () => {
  const { processPid } = serving;
  const seen: Held[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    await callMany(calls / samples);
    seen.push(heldBy(processPid));
  }
  await untilStored(serving);
  const early = seen.slice(samples / 10, samples / 2);
  const late = seen.slice(samples / 2);
  const megabytes = [early, late].map((part) => Math.round(most(part, "bytes") / 2 ** 20));
  process.stdout.write(`${megabytes.join(" MB, then ")} MB\n`);
  expect(most(late, "bytes")).toBeLessThan(most(early, "bytes") + swingBytes);
  expect(most(late, "files")).toBeLessThanOrEqual(most(early, "files") + swingFiles);
  // It has not been replaced.
  expect(serving.processPid).toBe(processPid);
}, 3_600_000);
