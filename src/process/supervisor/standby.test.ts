import { expect, test } from "bun:test";
import { ManualTimers } from "../../../test/support/manual-timers.ts";
import type { ChildMessage } from "./messages.ts";
import { Standby, type HearWorker, type StandbyLoss } from "./standby.ts";
import type { Worker, WorkerEnd } from "./worker.ts";

class StagedWorker implements Worker {
  readonly pid = 1;
  readonly #end = Promise.withResolvers<WorkerEnd>();
  readonly ended = this.#end.promise;
  readonly say: HearWorker;
  isKilled = false;

  constructor(say: HearWorker) {
    this.say = say;
  }

  begin(): void {}
  tell(): void {}
  pass(): void {}
  kill(): void {
    this.isKilled = true;
    this.end();
  }

  end(): void {
    this.#end.resolve({ exitCode: 137, signal: "SIGKILL", peakResidentBytes: undefined });
  }
}

function setUp() {
  const timers = new ManualTimers();
  const started: StagedWorker[] = [];
  const losses: StandbyLoss[] = [];
  const stage = { refusal: undefined as Error | undefined };
  const standby = new Standby({
    clock: { now: () => 0, monotonic: () => 0, schedule: timers.schedule.bind(timers) },
    start: (say) => {
      if (stage.refusal !== undefined) throw stage.refusal;
      const worker = new StagedWorker(say);
      started.push(worker);
      return worker;
    },
    onLost: (loss) => void losses.push(loss),
  });
  return { timers, started, losses, stage, standby };
}

const ignore = (): void => undefined;
const message: ChildMessage = { kind: "started", addresses: [] };

test("one is started after the head start, however often it is requested, and handed over once", () => {
  const { timers, started, standby } = setUp();
  standby.prepare();
  standby.prepare();
  expect(started).toHaveLength(0);
  timers.advance(10_000);
  standby.prepare();
  timers.advance(10_000);
  expect(started).toHaveLength(1);
  const heard: ChildMessage[] = [];
  const taken = standby.take((said) => void heard.push(said));
  expect(taken).toBe(started[0]);
  started[0]?.say(message);
  expect(heard).toEqual([message]);
  expect(standby.take(ignore)).toBeUndefined();
  timers.advance(10_000);
  expect(started).toHaveLength(1);
  standby.prepare();
  timers.advance(10_000);
  expect(started).toHaveLength(2);
});

test("taking it before its start returns none and cancels the start", () => {
  const { timers, started, standby } = setUp();
  standby.prepare();
  expect(standby.take(ignore)).toBeUndefined();
  timers.advance(10_000);
  expect(started).toHaveLength(0);
});

test("one that ends while it waits is replaced with a growing delay", async () => {
  const { timers, started, losses, standby } = setUp();
  standby.prepare();
  timers.advance(10_000);
  for (let end = 1; end <= 3; end += 1) {
    started[end - 1]?.end();
    while (losses.length < end) await Bun.sleep(1);
    timers.advance(10_000);
    expect(started).toHaveLength(end + 1);
  }
  expect(losses.map(({ nextStartMs, end }) => [nextStartMs, end?.signal])).toEqual([
    [100, "SIGKILL"],
    [200, "SIGKILL"],
    [400, "SIGKILL"],
  ]);
});

test("one that the system refuses to start is retried", () => {
  const { timers, started, losses, stage, standby } = setUp();
  stage.refusal = new Error("no process left");
  standby.prepare();
  timers.advance(500);
  expect(losses).toEqual([{ end: undefined, error: stage.refusal, nextStartMs: 100 }]);
  stage.refusal = undefined;
  timers.advance(100);
  expect(started).toHaveLength(1);
});

test("the end of one that was handed over is not a loss", async () => {
  const { timers, started, losses, standby } = setUp();
  standby.prepare();
  timers.advance(10_000);
  standby.take(ignore)?.kill();
  await started[0]?.ended;
  await Bun.sleep(1);
  timers.advance(10_000);
  expect([losses.length, started.length]).toEqual([0, 1]);
});

test("none is started or kept after the end", async () => {
  const { timers, started, losses, standby } = setUp();
  standby.prepare();
  timers.advance(10_000);
  standby.end();
  await started[0]?.ended;
  await Bun.sleep(1);
  standby.prepare();
  timers.advance(10_000);
  expect(started.map(({ isKilled }) => isKilled)).toEqual([true]);
  expect(losses).toEqual([]);
});
