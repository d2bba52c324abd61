import { describe, expect, test } from "bun:test";
import { ProcessClock, VirtualTime } from "../../test/simulation/virtual-time.ts";
import { systemClock } from "../domain/clock.ts";
import { HostProbes } from "./host-probes.ts";

/** Probes on virtual time, of hosts whose reachability the test sets. */
function bench() {
  const time = new VirtualTime();
  const clock = new ProcessClock(time, { monotonicMs: 5_000, wallMs: 0 });
  const started: { at: number; origin: string; timeoutMs: number }[] = [];
  const reachable = new Set<string>();
  const probe = async (url: string, timeoutMs: number): Promise<boolean> => {
    const { origin } = new URL(url);
    started.push({ at: time.now, origin, timeoutMs });
    const isReachable = reachable.has(origin);
    await time.sleep(isReachable ? 5 : timeoutMs);
    return isReachable;
  };
  const probes = new HostProbes(probe, clock);
  const answers: { at: number; answer: boolean }[] = [];
  const ask = (url: string, sinceMs: number, untilMs: number): void => {
    const question = { url, since: 5_000 + sinceMs, until: 5_000 + untilMs };
    void probes.canConnect(question).then((answer) => answers.push({ at: time.now, answer }));
  };
  const passTo = (untilMs: number): void => {
    time.schedule(() => undefined, untilMs - time.now);
    time.runUntil(() => false, { untilMs, steps: 100_000 });
  };
  return { ask, passTo, answers, started, reachable };
}

const host = "http://a.example:8080/v1";

describe("probes of hosts", () => {
  test("an attempt with a longer deadline starts another probe, on a clock that always advances", async () => {
    const timeouts: number[] = [];
    const probe = async (_url: string, timeoutMs: number): Promise<boolean> => {
      timeouts.push(timeoutMs);
      await Bun.sleep(timeoutMs);
      return false;
    };
    let readings = 0;
    const monotonic = (): number => {
      readings += 1;
      return systemClock.monotonic() + readings * 0.001;
    };
    const schedule = (run: () => void, delayMs: number) => systemClock.schedule(run, delayMs);
    const probes = new HostProbes(probe, { monotonic, schedule });
    const since = systemClock.monotonic();
    const ask = (waitMs: number) => probes.canConnect({ url: host, since, until: since + waitMs });
    expect(await Promise.all([ask(50), ask(100), ask(200)])).toEqual([false, false, false]);
    expect(timeouts.length).toBeLessThanOrEqual(6);
    expect(readings).toBeLessThan(100);
  });

  test("an unreachable host is reported exactly at the deadline", () => {
    const { ask, passTo, answers } = bench();
    passTo(500);
    ask(host, 0, 1_000);
    passTo(999);
    expect(answers).toEqual([]);
    passTo(1_000);
    expect(answers).toEqual([{ at: 1_000, answer: false }]);
  });

  test("a host that answers is reported at once", () => {
    const { ask, passTo, answers, reachable } = bench();
    reachable.add("http://a.example:8080");
    passTo(500);
    ask(host, 0, 1_000);
    passTo(600);
    expect(answers).toEqual([{ at: 505, answer: true }]);
  });

  test("a thousand attempts at one dead host share two probes, each attempt with its own deadline", () => {
    const { ask, passTo, answers, started } = bench();
    for (let at = 1; at <= 1_000; at += 1) {
      passTo(at);
      ask(`${host}/${at}`, at - 500, at + 500);
    }
    passTo(3_000);
    expect(started.map(({ at, timeoutMs }) => ({ at, timeoutMs }))).toEqual([
      { at: 1, timeoutMs: 1_000 },
      { at: 1_001, timeoutMs: 1_000 },
    ]);
    expect(answers).toEqual(
      Array.from({ length: 1_000 }, (_, index) => ({ at: index + 501, answer: false })),
    );
  });

  test("each host has its own probes", () => {
    const { ask, passTo, answers, started, reachable } = bench();
    reachable.add("http://b.example:8080");
    ask(host, 0, 1_000);
    ask(host.replace("a.", "b."), 0, 1_000);
    passTo(2_000);
    expect(started.map(({ origin }) => origin)).toContain("http://b.example:8080");
    expect(answers).toEqual([
      { at: 5, answer: true },
      { at: 1_000, answer: false },
    ]);
  });

  test("a result from after the start of an attempt is reused; an older one is not", () => {
    const { ask, passTo, answers, started, reachable } = bench();
    reachable.add("http://a.example:8080");
    ask(host, 0, 1_000);
    passTo(100);
    ask(host, 0, 1_100);
    ask(host, 50, 1_100);
    passTo(200);
    expect(answers.map(({ answer }) => answer)).toEqual([true, true, true]);
    expect(started.map(({ at }) => at)).toEqual([0, 100]);
  });

  test("an attempt waits for a probe from before its start, and then starts another", () => {
    const { ask, passTo, answers, reachable } = bench();
    ask(host, 0, 1_000);
    passTo(400);
    reachable.add("http://a.example:8080");
    ask(host, 100, 1_100);
    passTo(3_000);
    expect(answers).toEqual([
      { at: 1_000, answer: false },
      { at: 1_005, answer: true },
    ]);
  });

  test("an attempt with a longer deadline than the shared probe starts another", () => {
    const { ask, passTo, answers, reachable } = bench();
    ask(host, 0, 1_000);
    passTo(400);
    ask(host, 0, 2_000);
    reachable.add("http://a.example:8080");
    passTo(3_000);
    expect(answers).toEqual([
      { at: 1_000, answer: false },
      { at: 1_005, answer: true },
    ]);
  });
});
