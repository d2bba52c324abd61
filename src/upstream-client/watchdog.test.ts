import { describe, expect, test } from "bun:test";
import { ProcessClock, VirtualTime } from "../../test/simulation/virtual-time.ts";
import { Watchdog } from "./watchdog.ts";

const timeouts = { connectMs: 100, firstByteMs: 1_000, idleMs: 500, totalMs: 10_000 };

/** A watchdog on virtual time. An unreachable host is reported at the deadline of the probe. */
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
  test("ends an attempt without an answer at the first-byte timeout", () => {
    const { watchdog, passTo, stops } = watch();
    passTo(999);
    expect(watchdog.failure).toBeUndefined();
    passTo(1_001);
    expect(watchdog.failure?.details.kind).toBe("timed-out");
    expect(watchdog.signal.aborted).toBe(true);
    expect(stops).toEqual([1_000]);
  });

  test("ends an attempt at an unreachable host exactly at the connect timeout", () => {
    const { watchdog, passTo, stops, questions } = watch(false);
    passTo(99);
    expect(watchdog.failure).toBeUndefined();
    passTo(1_000);
    expect(watchdog.failure?.details.kind).toBe("connect-failed");
    expect(stops).toEqual([100]);
    expect(questions).toEqual([{ askedAt: 50, sinceMs: 0, untilMs: 100 }]);
  });

  test("does not end an attempt at a slow host that accepts connections", () => {
    const { watchdog, passTo, questions } = watch();
    passTo(999);
    expect(watchdog.failure).toBeUndefined();
    expect(questions).toHaveLength(1);
  });

  test("probes no host that answers within half of the connect timeout or has sent headers", () => {
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

  test("counts headers as a connection, with any result of a later probe", () => {
    const { watchdog, passTo, questions } = watch(false);
    passTo(60);
    watchdog.connected();
    passTo(999);
    expect(questions).toHaveLength(1);
    expect(watchdog.failure).toBeUndefined();
    passTo(1_001);
    expect(watchdog.failure?.details.kind).toBe("timed-out");
  });

  test("ends an attempt whose connection does not open at the connect timeout, without a probe", () => {
    const { watchdog, passTo, stops, questions } = watch();
    watchdog.connecting();
    passTo(99);
    expect(watchdog.failure).toBeUndefined();
    passTo(1_000);
    expect(watchdog.failure?.details.kind).toBe("connect-failed");
    expect([stops, questions]).toEqual([[100], []]);
  });

  test("gives the connection after a dead one the connect timeout, with and without a first byte", () => {
    for (const firstByteMs of [1_000, Infinity]) {
      const { watchdog, passTo, stops } = watch(true, { ...timeouts, firstByteMs });
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
    const { watchdog, passTo, stops, questions } = watch(false);
    watchdog.connecting();
    passTo(90);
    watchdog.connected();
    passTo(999);
    expect([watchdog.failure, questions]).toEqual([undefined, []]);
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

  test("probes no host where the connect timeout equals the first-byte timeout", () => {
    const { watchdog, passTo, stops, questions } = watch(false, { ...timeouts, connectMs: 1_000 });
    passTo(2_000);
    expect(questions).toEqual([]);
    expect(watchdog.failure?.details.message).toContain("timeouts.first_byte");
    expect(stops).toEqual([1_000]);
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

  test("calls onStop once and cancels its timer", () => {
    const { watchdog, passTo, stops } = watch();
    watchdog.stop();
    watchdog.abort();
    passTo(20_000);
    expect(stops).toEqual([0]);
    expect(watchdog.failure).toBeUndefined();
  });
});
