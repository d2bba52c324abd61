import { ProcessClock, VirtualTime } from "../simulation/virtual-time.ts";

/** A clock whose timers fire when the test advances it. */
export function virtualClock() {
  const time = new VirtualTime();
  const clock = new ProcessClock(time, { monotonicMs: 0, wallMs: 0 });
  const advance = (durationMs: number): void => {
    const untilMs = time.now + durationMs;
    time.schedule(() => undefined, durationMs);
    time.runUntil(() => false, { untilMs, steps: Infinity });
  };
  return { clock, advance };
}
