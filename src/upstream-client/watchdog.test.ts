import { describe, expect, test } from "bun:test";
import { ProcessClock, VirtualTime } from "../../test/simulation/virtual-time.ts";
import { Watchdog } from "./watchdog.ts";

const timeouts = { connectMs: 100, firstByteMs: 1_000, idleMs: 500, totalMs: 10_000 };

/** A watchdog on virtual time. */
function watch(times = timeouts) {
  const time = new VirtualTime();
  const clock = new ProcessClock(time, { monotonicMs: 5_000, wallMs: 0 });
  const stops: number[] = [];
  const watchdog = new Watchdog({
    timeouts: times,
    endsAt: clock.monotonic() + times.totalMs,
    clock,
    callerSignal: new AbortController().signal,
    places: { close: () => stops.push(time.now) },
  });
  const passTo = (untilMs: number): void => {
    time.schedule(() => undefined, untilMs - time.now);
    time.runUntil(() => false, { untilMs, steps: 1_000 });
  };
  return { watchdog, passTo, stops };
}

describe("a watchdog", () => {
  test("ends an attempt without an answer at the first-byte timeout", () => {
    const { watchdog, passTo, stops } = watch();
    passTo(999);
    expect(watchdog.failure).toBeUndefined();
    passTo(1_001);
    expect(watchdog.failure?.details.kind).toBe("timed-out");
    expect(watchdog.signal.aborted).toBe(true);
    expect(stops).toEqual([1_000]);
  });

  test("ends an attempt whose connection does not open at the connect timeout", () => {
    const { watchdog, passTo, stops } = watch();
    watchdog.connecting();
    passTo(99);
    expect(watchdog.failure).toBeUndefined();
    passTo(1_000);
    expect(watchdog.failure?.details.kind).toBe("connect-failed");
    expect(stops).toEqual([100]);
  });

  test("gives the connection after a dead one the connect timeout, with and without a first byte", () => {
    for (const firstByteMs of [1_000, Infinity]) {
      const { watchdog, passTo, stops } = watch({ ...timeouts, firstByteMs });
      passTo(70);
      watchdog.connecting();
      passTo(169);
      expect(watchdog.failure).toBeUndefined();
      passTo(1_000);
      expect(watchdog.failure?.details.kind).toBe("connect-failed");
      expect(stops).toEqual([170]);
    }
  });

  test("gives an attempt whose connection opened late the rest of its time", () => {
    const { watchdog, passTo, stops } = watch();
    watchdog.connecting();
    passTo(90);
    watchdog.connected();
    passTo(999);
    expect(watchdog.failure).toBeUndefined();
    passTo(1_001);
    expect(watchdog.failure?.details.kind).toBe("timed-out");
    expect(stops).toEqual([1_000]);
  });

  test("cancels its request once when it ends early, and not when it is over", () => {
    const { watchdog, passTo } = watch();
    let cancels = 0;
    watchdog.started({ cancel: () => void (cancels += 1) });
    passTo(1_001);
    watchdog.abort();
    expect([cancels, watchdog.signal.aborted]).toEqual([1, true]);
    const whole = watch().watchdog;
    whole.started({ cancel: () => void (cancels += 1) });
    whole.stop();
    expect([cancels, whole.signal.aborted]).toEqual([1, false]);
  });

  test("counts idle time from when the next chunk was first awaited", () => {
    const { watchdog, passTo, stops } = watch();
    watchdog.connected();
    watchdog.progress();
    watchdog.awaited();
    passTo(400);
    // Another reader takes over.
    watchdog.awaited();
    passTo(2_000);
    expect(stops).toEqual([500]);
  });

  test("ends an answer that is idle while its next chunk is awaited", () => {
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

  test("does not blame the upstream for a slow reader", () => {
    const { watchdog, passTo } = watch();
    for (let at = 300; at < 9_000; at += 1_500) {
      watchdog.awaited();
      passTo(at);
      watchdog.progress();
      passTo(at + 1_400);
    }
    expect(watchdog.failure).toBeUndefined();
  });

  test("ends any attempt at the total timeout of the call", () => {
    const { watchdog, passTo, stops } = watch();
    passTo(300);
    watchdog.progress();
    passTo(20_000);
    expect(watchdog.failure?.details.message).toContain("timeouts.total");
    expect(stops).toEqual([10_000]);
  });

  test("closes its place once and cancels its timer", () => {
    const { watchdog, passTo, stops } = watch();
    watchdog.stop();
    watchdog.abort();
    passTo(20_000);
    expect(stops).toEqual([0]);
    expect(watchdog.failure).toBeUndefined();
  });
});
