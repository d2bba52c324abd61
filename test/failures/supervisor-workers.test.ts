import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeCrashReport, type Crash } from "../../src/process/supervisor/crash-report.ts";
import type { StandbyLoss } from "../../src/process/supervisor/standby.ts";
import { Supervisor } from "../../src/process/supervisor/supervisor.ts";
import { startWorker, type Worker } from "../../src/process/supervisor/worker.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { until } from "../support/ledger-truth-process.ts";

const program = fileURLToPath(new URL("supervisor-worker.ts", import.meta.url));

/** Workers without a gateway, under the supervisor of a gateway. */
class Herd implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "sluice-workers-"));
  readonly crashes: Crash[] = [];
  readonly delaysMs: (number | undefined)[] = [];
  readonly started: Worker[] = [];
  readonly losses: StandbyLoss[] = [];
  readonly supervisor: Supervisor;
  readonly ended: Promise<number>;
  #port: string | undefined;

  constructor(workers: number, command: readonly string[] = [process.execPath, program]) {
    this.supervisor = new Supervisor({
      clock: systemClock,
      start: (onMessage) => {
        const words = [...command, String(workers), this.folder];
        const worker = startWorker({ command: words, environment: process.env }, (message) => {
          if (message.kind === "started") this.#port ??= message.addresses[1];
          onMessage(message);
        });
        this.started.push(worker);
        return worker;
      },
      onCrash: (crash, { nextStartMs }) => {
        this.crashes.push(crash);
        this.delaysMs.push(nextStartMs);
      },
      onStartRefused: (error) => {
        throw error;
      },
      onStandbyLost: (loss) => void this.losses.push(loss),
      onSilent: () => undefined,
      onServing: () => undefined,
    });
    this.ended = this.supervisor.run();
  }

  /** The process id of the worker that answers. */
  async ask(query = ""): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${this.#port}/${query}`, { keepalive: false });
    return Number(await response.text());
  }

  /** Waits until this number of workers answer, in any order. */
  async untilAnswering(count: number): Promise<ReadonlySet<number>> {
    let pids = new Set<number>();
    await until(`${count} workers answer`, async () => {
      if (this.#port === undefined) return false;
      const asked = Array.from({ length: 40 }, () => this.ask().catch(() => undefined));
      pids = new Set((await Promise.all(asked)).filter((pid) => pid !== undefined));
      return pids.size === count;
    });
    return pids;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.supervisor.pass("SIGTERM");
    for (const worker of this.started) worker.kill();
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

describe("several workers at one port", () => {
  let herd: Herd;
  beforeEach(() => {
    herd = new Herd(3);
  });
  afterEach(() => herd[Symbol.asyncDispose]());

  test("all serve; a killed one is replaced, and the others continue", async () => {
    const before = await herd.untilAnswering(3);
    const [victim = 0, ...others] = before;
    process.kill(victim, "SIGKILL");
    await until("the crash is reported", () => herd.crashes.length === 1);
    expect(herd.crashes[0]).toMatchObject({ pid: victim, signal: "SIGKILL", restarts: 0 });
    await until("a new one answers", async () => {
      const now = await herd.untilAnswering(3);
      return !now.has(victim) && others.every((pid) => now.has(pid));
    });
    // Control, three workers, and the new one.
    expect(herd.started).toHaveLength(5);
  });

  test("all end when the gateway is asked to, with their exit code", async () => {
    const pids = await herd.untilAnswering(3);
    herd.supervisor.pass("SIGTERM");
    expect(await herd.ended).toBe(0);
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    expect(herd.crashes).toEqual([]);
    expect(herd.started).toHaveLength(4);
  });
});

test("an uncaught exception is logged without its message, and the worker is restarted", async () => {
  await using herd = new Herd(1);
  const [pid = 0] = await herd.untilAnswering(1);
  const prompt = "the prompt of a customer";
  const frame = `\n    at customer (${program}:1:1)`;
  await herd.ask(`?fail=${encodeURIComponent(prompt + frame)}`);
  await until("the crash is reported", () => herd.crashes.length === 1);
  const [crash] = herd.crashes;
  expect(crash).toMatchObject({ pid, exitCode: 1, signal: undefined });
  expect(crash?.failure?.error).toBe("RangeError");
  expect(crash?.failure?.positions[0]).toMatch(
    /^failWith \(test\/failures\/supervisor-worker\.ts:\d+:\d+\)$/,
  );
  if (crash === undefined) throw new Error("there is no crash");
  const text = readFileSync(writeCrashReport(crash, herd.folder, "1.2.3"), "utf8");
  expect(text).toContain("RangeError");
  expect(text).not.toContain("customer");
  const [successor] = await herd.untilAnswering(1);
  expect(successor).not.toBe(pid);
});

test("the restarts of a worker that is killed repeatedly have a growing backoff", async () => {
  await using herd = new Herd(1);
  for (let kill = 1; kill <= 4; kill += 1) {
    const [pid = 0] = await herd.untilAnswering(1);
    process.kill(pid, "SIGKILL");
    await until("the crash is reported", () => herd.crashes.length === kill);
  }
  expect(herd.delaysMs).toEqual([100, 200, 400, 800]);
  expect(herd.crashes.map(({ restarts }) => restarts)).toEqual([0, 1, 2, 3]);
});

test("a supervisor that is asked to end while no worker runs starts none", async () => {
  await using herd = new Herd(1);
  for (let kill = 1; kill <= 4; kill += 1) {
    const [pid = 0] = await herd.untilAnswering(1);
    process.kill(pid, "SIGKILL");
    await until("the crash is reported", () => herd.crashes.length === kill);
  }
  herd.supervisor.pass("SIGTERM");
  expect(await herd.ended).toBe(0);
  expect(herd.started).toHaveLength(5);
});

test("a control process that cannot start is not started again, and its exit code is passed on", async () => {
  await using herd = new Herd(1, ["sh", "-c", "exit 7"]);
  expect(await herd.ended).toBe(7);
  // With the one that waited to be the first worker.
  expect(herd.started).toHaveLength(2);
  expect(herd.crashes).toEqual([]);
});

test("a control process that a signal ended before it served is started again", async () => {
  await using herd = new Herd(1, ["sh", "-c", "kill -SEGV $$"]);
  await until("it is started again", () => herd.started.length >= 3);
  expect(herd.crashes[0]).toMatchObject({ signal: "SIGSEGV", restarts: 0 });
  herd.supervisor.pass("SIGTERM");
  // By chance a worker may run at this moment, and crash while it is asked to end.
  await herd.ended;
});

test("a worker that ignores the second request to end is killed", async () => {
  await using herd = new Herd(1, ["sh", "-c", "exec sleep 600"]);
  await until("it is started", () => herd.started.length >= 1);
  herd.supervisor.pass("SIGTERM");
  await Bun.sleep(50);
  herd.supervisor.pass("SIGTERM");
  expect(await herd.ended).toBe(1);
});
