import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { sameSignalMs } from "../stop-signals.ts";
import type { Crash } from "./crash-report.ts";
import type { PassedSignal, WorkerMessage } from "./messages.ts";
import { mostStartsUnserved, Supervisor, type AfterEnd } from "./supervisor.ts";
import type { WorkerEnd } from "./worker.ts";

/** A process that the test controls. */
class StagedWorker {
  readonly pid: number;
  readonly passed: PassedSignal[] = [];
  readonly #end = Promise.withResolvers<WorkerEnd>();
  readonly ended = this.#end.promise;
  readonly say: (message: WorkerMessage) => void;

  constructor(pid: number, say: (message: WorkerMessage) => void) {
    this.pid = pid;
    this.say = say;
  }

  serve(workers = 1): void {
    const telemetry = { logLevel: "info", logFormat: "text" } as const;
    const rest = { isReloadable: true, hasStandby: false };
    this.say({ kind: "settings", dataDir: "/", workers, ...telemetry, ...rest });
    this.say({ kind: "started", addresses: [] });
  }

  begin(): void {}

  pass(signal: PassedSignal): void {
    this.passed.push(signal);
  }

  kill(): void {
    this.end("SIGKILL");
  }

  end(how: number | string): void {
    const exitCode = typeof how === "number" ? how : 128;
    const signal = typeof how === "number" ? undefined : how;
    this.#end.resolve({ exitCode, signal, peakResidentBytes: undefined });
  }
}

class Stage {
  readonly workers: StagedWorker[] = [];
  readonly crashes: (Crash & AfterEnd)[] = [];
  readonly clock = new ManualClock();
  readonly refusals: (AfterEnd & { error: unknown })[] = [];
  refusal: Error | undefined;
  readonly supervisor = new Supervisor({
    clock: this.clock,
    start: (_fetchLimit, onMessage) => {
      if (this.refusal !== undefined) throw this.refusal;
      const worker = new StagedWorker(this.workers.length + 1, onMessage);
      this.workers.push(worker);
      return worker;
    },
    onCrash: (crash, after) => void this.crashes.push({ ...crash, ...after }),
    onStartRefused: (error, after) => void this.refusals.push({ error, ...after }),
    onStandbyLost: () => undefined,
  });
  readonly ended: Promise<number>;

  constructor(refusal?: Error) {
    this.refusal = refusal;
    this.ended = this.supervisor.run();
  }

  async worker(number: number): Promise<StagedWorker> {
    for (;;) {
      const found = this.workers[number - 1];
      if (found !== undefined) return found;
      await Bun.sleep(5);
    }
  }
}

const outOfProcesses = Object.assign(new Error("spawn"), { code: "EAGAIN" });

test("a worker that the system refuses to start is retried once the gateway has served", async () => {
  const stage = new Stage();
  const first = await stage.worker(1);
  first.serve();
  stage.refusal = outOfProcesses;
  first.end("SIGKILL");
  while (stage.refusals.length < 2) await Bun.sleep(5);
  expect(stage.refusals[0]).toMatchObject({ error: outOfProcesses, nextStartMs: 200 });
  expect(stage.refusals[1]).toMatchObject({ nextStartMs: 400 });
  stage.refusal = undefined;
  (await stage.worker(2)).serve();
  expect(stage.crashes).toHaveLength(1);
  stage.supervisor.pass("SIGTERM");
  stage.workers[1]?.end(0);
  expect(await stage.ended).toBe(0);
});

test("one of several that the system refuses to start is retried too", async () => {
  const stage = new Stage();
  const first = await stage.worker(1);
  stage.refusal = outOfProcesses;
  first.serve(2);
  while (stage.refusals.length < 1) await Bun.sleep(5);
  stage.refusal = undefined;
  const second = await stage.worker(2);
  second.serve(2);
  stage.supervisor.pass("SIGTERM");
  first.end(0);
  second.end(0);
  expect(await stage.ended).toBe(0);
});

test("a first worker that the system refuses to start ends the gateway with a log line", async () => {
  const stage = new Stage(outOfProcesses);
  expect(await stage.ended).toBe(1);
  expect(stage.refusals).toEqual([
    { error: outOfProcesses, nextStartMs: undefined, settings: undefined },
  ]);
});

test.each([
  ["SIGSEGV", { signal: "SIGSEGV", exitCode: undefined }],
  ["SIGKILL", { signal: "SIGKILL", exitCode: undefined }],
  [1, { signal: undefined, exitCode: 1 }],
] as const)(
  "a crash (%p) during a drain is reported, and no restart follows",
  async (how, crash) => {
    const stage = new Stage();
    const worker = await stage.worker(1);
    worker.serve();
    stage.supervisor.pass("SIGTERM");
    expect(worker.passed).toEqual(["SIGTERM"]);
    worker.end(how);
    expect(await stage.ended).toBe(1);
    expect(stage.crashes).toHaveLength(1);
    expect(stage.crashes[0]).toMatchObject({ ...crash, hasServed: true, nextStartMs: undefined });
    expect(stage.workers).toHaveLength(1);
  },
);

test.each([0, "SIGINT", "SIGTERM"])(
  "a worker that ends as asked (%p), also before it handles signals, is neither crash nor failure",
  async (how) => {
    const stage = new Stage();
    stage.supervisor.pass("SIGINT");
    (await stage.worker(1)).end(how);
    expect(await stage.ended).toBe(0);
    expect(stage.crashes).toEqual([]);
  },
);

test.each([
  [1, 1],
  ["SIGKILL", 1],
  ["SIGTERM", 1],
  [0, 0],
] as const)(
  "cut short by a second request, an end by %p is exit code %d and not a crash",
  async (...one) => {
    const [how, exitCode] = one;
    const stage = new Stage();
    const worker = await stage.worker(1);
    worker.serve();
    stage.supervisor.pass("SIGTERM");
    stage.clock.advance(50);
    stage.supervisor.pass("SIGTERM");
    worker.end(how);
    expect(await stage.ended).toBe(exitCode);
    expect(stage.crashes).toEqual([]);
  },
);

test("a worker that ends before it serves is reported as such and restarted", async () => {
  const stage = new Stage();
  (await stage.worker(1)).serve();
  stage.workers[0]?.end("SIGKILL");
  (await stage.worker(2)).end(1);
  const third = await stage.worker(3);
  expect(stage.crashes.map(({ hasServed, nextStartMs }) => [hasServed, nextStartMs])).toEqual([
    [true, 100],
    [false, 200],
  ]);
  stage.supervisor.pass("SIGTERM");
  third.end(0);
  expect(await stage.ended).toBe(0);
});

test("a gateway gives up when signals keep ending its workers before any served", async () => {
  const stage = new Stage();
  for (let start = 1; start <= mostStartsUnserved; start += 1) {
    (await stage.worker(start)).end("SIGKILL");
  }
  expect(await stage.ended).toBe(1);
  expect(stage.workers).toHaveLength(mostStartsUnserved);
  expect(stage.crashes.map(({ nextStartMs }) => nextStartMs)).toEqual([
    100,
    200,
    400,
    800,
    undefined,
  ]);
});

test("a signal that arrives twice, as npm forwards it, is one request: nothing is cut short", async () => {
  const stage = new Stage();
  const worker = await stage.worker(1);
  worker.serve();
  stage.supervisor.pass("SIGINT");
  stage.clock.advance(sameSignalMs - 1);
  stage.supervisor.pass("SIGINT");
  expect(worker.passed).toEqual(["SIGINT"]);
  worker.end(0);
  expect(await stage.ended).toBe(0);
});
