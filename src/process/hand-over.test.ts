import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../test/support/ledger-truth-process.ts";
import { systemClock } from "../domain/clock.ts";
import { minuteScopes } from "../domain/limits/limit-scope.ts";
import { HandOver } from "./hand-over.ts";
import { OwnLimits } from "./own-limits.ts";

const scopes = minuteScopes("key:a", { requestsPerMinute: 10, tokensPerMinute: 1_000 });

function makeFolder() {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-limits-"));
  return { dataDir, [Symbol.dispose]: () => rmSync(dataDir, { recursive: true }) };
}

/** One process with limits in its memory. */
function processIn(dataDir: string) {
  const bounds = {};
  const limits = new OwnLimits({ clock: systemClock, random: () => 0, ...bounds });
  const given: boolean[] = [];
  const failures: unknown[] = [];
  const handOver = new HandOver({
    dataDir,
    limits,
    clock: systemClock,
    onGiven: () => void given.push(limits.isGiven),
    onFailed: (error) => void failures.push(error),
  });
  let calls = 0;
  const admit = (tokens: number): string | undefined => {
    const callId = `${crypto.randomUUID()} ${(calls += 1)}`;
    return limits.acquire({ callId, scopes, tokens }).isAdmitted ? callId : undefined;
  };
  return { limits, handOver, given, failures, admit };
}

test("a process gives its limits to the next one, and later what its calls have used", async () => {
  using folder = makeFolder();
  const before = processIn(folder.dataDir);
  expect(await before.handOver.take()).toBe(false);
  before.handOver.offer();
  expect(statSync(join(folder.dataDir, "limits.sock")).mode & 0o777).toBe(0o600);
  const call = before.admit(1_000) ?? "";
  const after = processIn(folder.dataDir);
  expect(await after.handOver.take()).toBe(true);
  after.handOver.offer();
  expect([before.given, before.admit(1), after.admit(1)]).toEqual([[true], undefined, undefined]);
  before.handOver.leave();
  before.limits.settle(call, 100);
  await until("the use is known", () => after.admit(800) !== undefined);
  await before.handOver.stop();
  await until("all is granted", () => after.admit(100) !== undefined);
  expect(after.admit(1)).toBeUndefined();
  // The one after it takes them from there.
  const last = processIn(folder.dataDir);
  expect(await last.handOver.take()).toBe(true);
  expect(last.admit(1)).toBeUndefined();
  await after.handOver.stop();
  await last.handOver.stop();
  expect([before.failures, after.failures, last.failures]).toEqual([[], [], []]);
});

test("a successor that ends before it serves gives everything back", async () => {
  using folder = makeFolder();
  const before = processIn(folder.dataDir);
  before.handOver.offer();
  const after = processIn(folder.dataDir);
  expect(await after.handOver.take()).toBe(true);
  expect(before.admit(600)).toBeUndefined();
  await after.handOver.stop();
  await until("the limits are back", () => before.given.length === 2);
  expect(before.admit(600)).toBeDefined();
  const next = processIn(folder.dataDir);
  expect(await next.handOver.take()).toBe(true);
  expect(next.admit(300)).toBeUndefined();
  before.handOver.leave();
  await next.handOver.stop();
  await before.handOver.stop();
  expect(existsSync(join(folder.dataDir, "limits.sock"))).toBe(false);
});

test("a socket that a killed process has left is no process", async () => {
  using folder = makeFolder();
  const path = join(folder.dataDir, "limits.sock");
  const program = `Bun.serve({ unix: ${JSON.stringify(path)}, fetch: () => new Response() });
    process.kill(process.pid, "SIGKILL");`;
  await Bun.spawn([process.execPath, "-e", program]).exited;
  expect(existsSync(path)).toBe(true);
  const next = processIn(folder.dataDir);
  expect(await next.handOver.take()).toBe(false);
  next.handOver.offer();
  await next.handOver.stop();
  expect(next.failures).toEqual([]);
});
