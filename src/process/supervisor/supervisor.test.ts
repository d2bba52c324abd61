import { describe, expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { sameSignalMs } from "../stop-signals.ts";
import type { Crash } from "./crash-report.ts";
import type { Beginning, ChildMessage, PassedSignal, Role } from "./messages.ts";
import type { AfterEnd } from "./supervisor-options.ts";
import { mostStartsUnserved, Supervisor } from "./supervisor.ts";
import type { WorkerEnd } from "./worker.ts";

/** A process that the test controls. */
class StagedProcess {
  readonly pid: number;
  readonly passed: PassedSignal[] = [];
  readonly told: string[] = [];
  readonly #end = Promise.withResolvers<WorkerEnd>();
  readonly ended = this.#end.promise;
  readonly say: (message: ChildMessage) => void;
  beginning: Beginning | undefined;
  isKilled = false;

  constructor(pid: number, say: (message: ChildMessage) => void) {
    this.pid = pid;
    this.say = say;
  }

  get role(): Role | undefined {
    return this.beginning?.role;
  }

  serve(workers = 1, isReloadable = true): void {
    const telemetry = { logLevel: "info", logFormat: "text" } as const;
    const rest = { isReloadable, hasStandby: false, socket: "/control.sock" };
    if (this.role?.kind === "control") {
      this.say({ kind: "settings", dataDir: "/", workers, ...telemetry, ...rest });
    }
    this.say({ kind: "started", addresses: [] });
  }

  begin(beginning: Beginning): void {
    this.beginning = beginning;
  }

  tell(what: "replaced" | "take-over" | "ping"): void {
    if (what === "ping") this.say({ kind: "pong" });
    else this.told.push(what);
  }

  pass(signal: PassedSignal): void {
    this.passed.push(signal);
  }

  kill(): void {
    this.isKilled = true;
    this.end("SIGKILL");
  }

  end(how: number | string): void {
    const exitCode = typeof how === "number" ? how : 128;
    const signal = typeof how === "number" ? undefined : how;
    this.#end.resolve({ exitCode, signal, peakResidentBytes: undefined });
  }
}

class Stage {
  readonly processes: StagedProcess[] = [];
  readonly crashes: (Crash & AfterEnd)[] = [];
  readonly clock = new ManualClock();
  readonly refusals: (AfterEnd & { error: unknown })[] = [];
  refusal: Error | undefined;
  readonly supervisor = new Supervisor({
    clock: this.clock,
    start: (onMessage) => {
      if (this.refusal !== undefined) throw this.refusal;
      const process = new StagedProcess(this.processes.length + 1, onMessage);
      this.processes.push(process);
      return process;
    },
    onCrash: (crash, after) => void this.crashes.push({ ...crash, ...after }),
    onStartRefused: (error, after) => void this.refusals.push({ error, ...after }),
    onStandbyLost: () => undefined,
    onSilent: () => undefined,
    onServing: () => undefined,
  });
  readonly ended: Promise<number>;

  constructor(refusal?: Error) {
    this.refusal = refusal;
    this.ended = this.supervisor.run();
  }

  /** The `nth` process with this role. */
  async in(kind: Role["kind"], nth = 1): Promise<StagedProcess> {
    for (;;) {
      const found = this.processes.filter(({ role }) => role?.kind === kind)[nth - 1];
      if (found !== undefined) return found;
      await Bun.sleep(5);
    }
  }

  async serving(workers = 1) {
    const control = await this.in("control");
    control.serve(workers);
    const worker = await this.in("worker");
    worker.serve();
    return { control, worker };
  }

  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await Bun.sleep(1);
  }

  /** The `nth` control process replaces the one before. */
  async replaceControl(nth = 2, workers = 1): Promise<void> {
    const before = await this.in("control", nth - 1);
    const next = await this.in("control", nth);
    next.say({ kind: "waiting" });
    await this.until(() => before.told.includes("replaced"));
    before.end(0);
    await this.until(() => next.told.includes("take-over"));
    next.serve(workers);
  }

  async end(): Promise<number> {
    this.supervisor.pass("SIGTERM");
    for (const process of this.processes) process.end(0);
    return this.ended;
  }
}

const outOfProcesses = Object.assign(new Error("spawn"), { code: "EAGAIN" });

describe("a gateway that starts", () => {
  test("begins with control, then one worker, then the others", async () => {
    const stage = new Stage();
    const control = await stage.in("control");
    const roles = () => stage.processes.map(({ role }) => role);
    const ofControl = { kind: "control" } as const;
    expect(roles()).toEqual([ofControl, undefined]);
    control.serve(3);
    const first = { kind: "worker", number: 1, socket: "/control.sock" } as const;
    const portUses = () => stage.processes.map(({ beginning }) => beginning?.portUse);
    expect(roles()).toEqual([ofControl, first]);
    stage.processes[1]?.serve();
    expect(roles().slice(1)).toEqual([1, 2, 3].map((number) => ({ ...first, number })));
    expect(portUses()).toEqual(["first", "first", "another", "another"]);
    expect(await stage.end()).toBe(0);
  });

  test("hands the addresses that one process has to those after it", async () => {
    const stage = new Stage();
    const control = await stage.in("control");
    control.say({ kind: "started", addresses: ["--admin", "127.0.0.1:1"] });
    const worker = await stage.in("worker");
    worker.say({ kind: "started", addresses: ["--data", "127.0.0.1:2"] });
    worker.end("SIGKILL");
    const next = await stage.in("worker", 2);
    const both = ["--admin", "127.0.0.1:1", "--data", "127.0.0.1:2"];
    expect([worker, next].map(({ beginning }) => beginning?.addresses)).toEqual([
      both.slice(0, 2),
      both,
    ]);
    expect(await stage.end()).toBe(0);
  });

  test.each(["control", "worker"] as const)(
    "ends with the exit code of a first %s that cannot start",
    async (kind) => {
      const stage = new Stage();
      if (kind === "worker") (await stage.in("control")).serve();
      (await stage.in(kind)).end(7);
      if (kind === "worker") {
        const control = await stage.in("control");
        while (control.passed.length === 0) await Bun.sleep(1);
        expect(control.passed).toEqual(["SIGINT"]);
        control.end(0);
      }
      expect(await stage.ended).toBe(7);
      expect(stage.crashes).toEqual([]);
    },
  );

  test.each(["control", "worker"] as const)(
    "gives up when signals keep ending its %s before any served",
    async (kind) => {
      const stage = new Stage();
      if (kind === "worker") (await stage.in("control")).serve();
      for (let start = 1; start <= mostStartsUnserved; start += 1) {
        (await stage.in(kind, start)).end("SIGKILL");
      }
      if (kind === "worker") (await stage.in("control")).end(0);
      expect(await stage.ended).toBe(1);
      const delays = [100, 200, 400, 800, undefined];
      expect(stage.crashes.map(({ nextStartMs }) => nextStartMs)).toEqual(delays);
      expect(new Set(stage.crashes.map(({ role }) => role))).toEqual(new Set([kind]));
    },
  );

  test("ends with a log line when the system refuses to start a process", async () => {
    const stage = new Stage(outOfProcesses);
    expect(await stage.ended).toBe(1);
    expect(stage.refusals).toEqual([
      { error: outOfProcesses, nextStartMs: undefined, settings: undefined },
    ]);
  });
});

describe("a gateway that serves", () => {
  test.each(["control", "worker"] as const)("replaces %s, and no other process", async (kind) => {
    const stage = new Stage();
    const both = await stage.serving();
    both[kind].end("SIGKILL");
    const next = await stage.in(kind, 2);
    next.serve();
    expect(stage.crashes).toHaveLength(1);
    expect(stage.crashes[0]).toMatchObject({ role: kind, signal: "SIGKILL", nextStartMs: 100 });
    const other = kind === "control" ? both.worker : both.control;
    expect([other.passed, other.isKilled]).toEqual([[], false]);
    expect(stage.processes.filter(({ role }) => role !== undefined)).toHaveLength(3);
    expect(await stage.end()).toBe(0);
  });

  test("retries a process that the system refuses to start", async () => {
    const stage = new Stage();
    const { worker } = await stage.serving();
    stage.refusal = outOfProcesses;
    worker.end("SIGKILL");
    while (stage.refusals.length < 2) await Bun.sleep(5);
    expect(stage.refusals[0]).toMatchObject({ error: outOfProcesses, nextStartMs: 200 });
    expect(stage.refusals[1]).toMatchObject({ nextStartMs: 400 });
    stage.refusal = undefined;
    (await stage.in("worker", 2)).serve();
    expect(stage.crashes).toHaveLength(1);
    expect(await stage.end()).toBe(0);
  });

  test("restarts a worker that ends before it serves, and reports it as such", async () => {
    const stage = new Stage();
    const { worker } = await stage.serving();
    worker.end("SIGKILL");
    (await stage.in("worker", 2)).end(1);
    await stage.in("worker", 3);
    expect(stage.crashes.map(({ hasServed, nextStartMs }) => [hasServed, nextStartMs])).toEqual([
      [true, 100],
      [false, 200],
    ]);
    expect(await stage.end()).toBe(0);
  });
});

describe("a gateway that is restarted", () => {
  test("has control replaced first, then each worker, and none before its successor is there", async () => {
    const stage = new Stage();
    const { control, worker } = await stage.serving(2);
    const second = await stage.in("worker", 2);
    second.serve();
    const restarted = stage.supervisor.restart();
    const newControl = await stage.in("control", 2);
    expect([newControl.beginning?.portUse, control.told]).toEqual(["successor", []]);
    newControl.say({ kind: "waiting" });
    await stage.until(() => control.told.includes("replaced"));
    expect(newControl.told).toEqual([]);
    control.end(0);
    await stage.until(() => newControl.told.includes("take-over"));
    expect(stage.processes.filter(({ role }) => role?.kind === "worker")).toHaveLength(2);
    newControl.serve(2);
    for (const [nth, old] of [worker, second].entries()) {
      const next = await stage.in("worker", 3 + nth);
      expect([next.beginning?.portUse, next.role, old.told]).toEqual(["successor", old.role, []]);
      next.serve();
      await stage.until(() => old.told.includes("replaced"));
    }
    expect(await restarted).toBeUndefined();
    // The old workers still serve their calls; afterwards they are not replaced.
    worker.end(0);
    second.end(0);
    await Bun.sleep(5);
    expect([stage.crashes, stage.processes.length]).toEqual([[], 6]);
    expect(await stage.end()).toBe(0);
  });

  test.each([
    ["control", "no new control process starts: the port is taken"],
    ["worker", "no new worker process starts: the port is taken"],
  ] as const)("goes on with the %s that it has if no new one starts", async (kind, problem) => {
    const stage = new Stage();
    const both = await stage.serving();
    const restarted = stage.supervisor.restart();
    if (kind === "worker") await stage.replaceControl();
    const next = await stage.in(kind, 2);
    next.say({ kind: "not-started", reason: "the port is taken" });
    next.end(1);
    expect(await restarted).toBe(problem);
    expect(both[kind].told).toEqual([]);
    expect(stage.crashes).toEqual([]);
    expect(await stage.end()).toBe(0);
  });

  test("points to its log if a new process does not say why it ends", async () => {
    const stage = new Stage();
    await stage.serving();
    const restarted = stage.supervisor.restart();
    (await stage.in("control", 2)).end(1);
    expect(await restarted).toContain("the log of the gateway may have the reason");
    expect(await stage.end()).toBe(0);
  });

  test("starts control at once where it would be tried again later, and says why it fails", async () => {
    const stage = new Stage();
    const { control, worker } = await stage.serving();
    control.end("SIGKILL");
    await stage.until(() => stage.crashes.length === 1);
    const failing = stage.supervisor.restart();
    const second = await stage.in("control", 2);
    expect(second.beginning?.portUse).toBe("another");
    second.say({ kind: "not-started", reason: "the schema is old" });
    second.end(1);
    expect(await failing).toBe("no new control process starts: the schema is old");
    const restarted = stage.supervisor.restart();
    const third = await stage.in("control", 3);
    third.say({ kind: "waiting" });
    await stage.until(() => third.told.includes("take-over"));
    third.serve();
    (await stage.in("worker", 2)).serve();
    expect(await restarted).toBeUndefined();
    expect(worker.told).toEqual(["replaced"]);
    expect(await stage.end()).toBe(0);
  });

  test("replaces a new process that crashes, and reports an old one that crashes while it leaves", async () => {
    const stage = new Stage();
    const { worker } = await stage.serving();
    const restarted = stage.supervisor.restart();
    await stage.replaceControl();
    const next = await stage.in("worker", 2);
    next.serve();
    expect(await restarted).toBeUndefined();
    worker.end("SIGSEGV");
    await stage.until(() => stage.crashes.length === 1);
    expect(stage.crashes[0]).toMatchObject({ pid: worker.pid, nextStartMs: undefined });
    next.end("SIGKILL");
    const third = await stage.in("worker", 3);
    expect(third.beginning?.portUse).toBe("another");
    expect(await stage.end()).toBe(0);
  });

  test("has as many workers as the configuration says by then", async () => {
    const stage = new Stage();
    const { worker } = await stage.serving(2);
    const second = await stage.in("worker", 2);
    second.serve();
    const fewer = stage.supervisor.restart();
    await stage.replaceControl(2, 1);
    (await stage.in("worker", 3)).serve();
    expect(await fewer).toBeUndefined();
    expect([worker.told, second.told]).toEqual([["replaced"], ["replaced"]]);
    const more = stage.supervisor.restart();
    await stage.replaceControl(3, 2);
    (await stage.in("worker", 4)).serve();
    expect(await more).toBeUndefined();
    expect((await stage.in("worker", 5)).role).toMatchObject({ number: 2 });
    expect(await stage.end()).toBe(0);
  });

  test("ends with all its processes when it is asked to end meanwhile", async () => {
    const stage = new Stage();
    const { control, worker } = await stage.serving();
    const restarted = stage.supervisor.restart();
    const next = await stage.in("control", 2);
    next.say({ kind: "waiting" });
    stage.supervisor.pass("SIGTERM");
    for (const process of [control, worker, next]) {
      expect(process.passed).toEqual(["SIGTERM"]);
      process.end(0);
    }
    expect(await stage.ended).toBe(0);
    expect(await restarted).toBeDefined();
    expect(stage.crashes).toEqual([]);
  });

  test("says so when it cannot be", async () => {
    const stage = new Stage();
    expect(await stage.supervisor.restart()).toBe("the gateway does not serve yet");
    const { control } = await stage.serving();
    control.serve(1, false);
    expect(await stage.supervisor.restart()).toContain("a demo");
    expect(await stage.end()).toBe(0);
  });
});

describe("a gateway that is asked to end", () => {
  test.each([
    ["SIGSEGV", { signal: "SIGSEGV", exitCode: undefined }],
    ["SIGKILL", { signal: "SIGKILL", exitCode: undefined }],
    [1, { signal: undefined, exitCode: 1 }],
  ] as const)("reports a crash (%p) while it drains, and restarts nothing", async (how, crash) => {
    const stage = new Stage();
    const { control, worker } = await stage.serving();
    const started = stage.processes.length;
    stage.supervisor.pass("SIGTERM");
    expect([control.passed, worker.passed]).toEqual([["SIGTERM"], ["SIGTERM"]]);
    worker.end(how);
    control.end(0);
    expect(await stage.ended).toBe(1);
    expect(stage.crashes).toHaveLength(1);
    expect(stage.crashes[0]).toMatchObject({ ...crash, hasServed: true, nextStartMs: undefined });
    expect(stage.processes).toHaveLength(started);
  });

  test.each([0, "SIGINT", "SIGTERM"])(
    "takes an end as asked (%p), also before signals are handled, for neither crash nor failure",
    async (how) => {
      const stage = new Stage();
      stage.supervisor.pass("SIGINT");
      (await stage.in("control")).end(how);
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
    "twice is cut short: an end by %p is exit code %d and not a crash",
    async (...one) => {
      const [how, exitCode] = one;
      const stage = new Stage();
      const { control, worker } = await stage.serving();
      stage.supervisor.pass("SIGTERM");
      stage.clock.advance(50);
      stage.supervisor.pass("SIGTERM");
      worker.end(how);
      control.end(0);
      expect(await stage.ended).toBe(exitCode);
      expect(stage.crashes).toEqual([]);
    },
  );

  test("by a signal that arrives twice, as npm forwards it, is asked once", async () => {
    const stage = new Stage();
    const { control, worker } = await stage.serving();
    stage.supervisor.pass("SIGINT");
    stage.clock.advance(sameSignalMs - 1);
    stage.supervisor.pass("SIGINT");
    expect([control.passed, worker.passed]).toEqual([["SIGINT"], ["SIGINT"]]);
    worker.end(0);
    control.end(0);
    expect(await stage.ended).toBe(0);
  });
});
