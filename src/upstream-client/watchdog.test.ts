import { describe, expect, test } from "bun:test";
import { ProcessClock, VirtualTime } from "../../test/simulation/virtual-time.ts";
import { Watchdog } from "./watchdog.ts";

const timeouts = { connectMs: 100, firstByteMs: 1_000, idleMs: 500, totalMs: 10_000 };

/** A watchdog, and time that passes when it is told to. A dead host is known at the end of its time. */
function watch(isThere = true, times = timeouts) {
  const time = new VirtualTime();
  const clock = new ProcessClock(time, { monotonicMs: 5_000, wallMs: 0 });
  const stops: number[] = [];
  const questions: object[] = [];
  const watchdog = new Watchdog({
    timeouts: times,
    endsAt: clock.monotonic() + times.totalMs,
    clock,
    callerSignal: new AbortController().signal,
    onStop: () => stops.push(time.now),
    canConnect: async ({ since, until }) => {
      questions.push({ askedAt: time.now, sinceMs: since - 5_000, untilMs: until - 5_000 });
      await time.sleep(isThere ? 1 : until - clock.monotonic());
      return isThere;
    },
  });
  const passTo = (untilMs: number): void => {
    time.schedule(() => undefined, untilMs - time.now);
    time.runUntil(() => false, { untilMs, steps: 1_000 });
  };
  return { watchdog, passTo, stops, questions };
}

describe("a watchdog", () => {
  test("ends an attempt without an answer at the first byte's time", () => {
    const { watchdog, passTo, stops } = watch();
    passTo(999);
    expect(watchdog.failure).toBeUndefined();
    passTo(1_001);
    expect(watchdog.failure?.details.kind).toBe("timed-out");
    expect(watchdog.signal.aborted).toBe(true);
    expect(stops).toEqual([1_000]);
  });

  test("ends an attempt at a host that takes no connection at the connect time, not later", () => {
    const { watchdog, passTo, stops, questions } = watch(false);
    passTo(99);
    expect(watchdog.failure).toBeUndefined();
    passTo(1_000);
    expect(watchdog.failure?.details.kind).toBe("connect-failed");
    expect(stops).toEqual([100]);
    expect(questions).toEqual([{ askedAt: 50, sinceMs: 0, untilMs: 100 }]);
  });

  test("does not end a host that takes connections and is slow", () => {
    const { watchdog, passTo, questions } = watch();
    passTo(999);
    expect(watchdog.failure).toBeUndefined();
    expect(questions).toHaveLength(1);
  });

  test("asks no host that answers within half of the connect time, or whose headers came", () => {
    const quick = watch(false);
    quick.passTo(49);
    quick.watchdog.awaited();
    quick.watchdog.progress();
    quick.passTo(400);
    const waiting = watch(false);
    waiting.passTo(49);
    waiting.watchdog.connected();
    waiting.passTo(400);
    expect([quick.questions, waiting.questions]).toEqual([[], []]);
    expect([quick.watchdog.failure, waiting.watchdog.failure]).toEqual([undefined, undefined]);
  });

  test("takes headers for a connection, whatever is said of the host after them", () => {
    const { watchdog, passTo, questions } = watch(false);
    passTo(60);
    watchdog.connected();
    passTo(999);
    expect(questions).toHaveLength(1);
    expect(watchdog.failure).toBeUndefined();
    passTo(1_001);
    expect(watchdog.failure?.details.kind).toBe("timed-out");
  });

  test("asks nobody where the connect time is as long as the first byte's: behind a proxy", () => {
    const { watchdog, passTo, stops, questions } = watch(false, { ...timeouts, connectMs: 1_000 });
    passTo(2_000);
    expect(questions).toEqual([]);
    expect(watchdog.failure?.details.message).toContain("timeouts.first_byte");
    expect(stops).toEqual([1_000]);
  });

  test("ends an answer that is silent while its next piece is awaited", () => {
    const { watchdog, passTo, stops } = watch();
    passTo(300);
    watchdog.progress();
    passTo(400);
    watchdog.awaited();
    passTo(899);
    expect(watchdog.failure).toBeUndefined();
    passTo(2_000);
    expect(watchdog.failure?.details.message).toContain("timeouts.idle");
    expect(stops).toEqual([900]);
  });

  test("does not blame the upstream for a reader that takes its time", () => {
    const { watchdog, passTo } = watch();
    for (let at = 300; at < 9_000; at += 1_500) {
      watchdog.awaited();
      passTo(at);
      watchdog.progress();
      passTo(at + 1_400);
    }
    expect(watchdog.failure).toBeUndefined();
  });

  test("ends whatever it is at the end of the call's time", () => {
    const { watchdog, passTo, stops } = watch();
    passTo(300);
    watchdog.progress();
    passTo(20_000);
    expect(watchdog.failure?.details.message).toContain("timeouts.total");
    expect(stops).toEqual([10_000]);
  });

  test("tells of its end once, and forgets its timer", () => {
    const { watchdog, passTo, stops } = watch();
    watchdog.stop();
    watchdog.abort();
    passTo(20_000);
    expect(stops).toEqual([0]);
    expect(watchdog.failure).toBeUndefined();
  });
});
