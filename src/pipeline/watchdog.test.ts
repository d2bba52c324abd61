import { describe, expect, test } from "bun:test";
import { ProcessClock, VirtualTime } from "../../test/simulation/virtual-time.ts";
import { Watchdog } from "./watchdog.ts";

const timeouts = { connectMs: 100, firstByteMs: 1_000, idleMs: 500, totalMs: 10_000 };

/** A watchdog, and time that passes when it is told to. */
function watch(canConnect = true) {
  const time = new VirtualTime();
  const clock = new ProcessClock(time, { monotonicMs: 5_000, wallMs: 0 });
  const stops: number[] = [];
  const watchdog = new Watchdog({
    timeouts,
    endsAt: clock.monotonic() + timeouts.totalMs,
    clock,
    callerSignal: new AbortController().signal,
    onStop: () => stops.push(time.now),
    canConnect: () => Promise.resolve(canConnect),
  });
  const passTo = (untilMs: number): void => {
    time.schedule(() => undefined, untilMs - time.now);
    time.runUntil(() => false, { untilMs, steps: 1_000 });
  };
  return { watchdog, passTo, stops };
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

  test("ends an attempt at a host that cannot be reached at the connect time", () => {
    const { watchdog, passTo } = watch(false);
    passTo(101);
    expect(watchdog.failure?.details.kind).toBe("connect-failed");
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
