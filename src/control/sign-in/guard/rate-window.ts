import type { Clock } from "../../../domain/clock.ts";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";

/** Most names that are counted at a time; the one that was silent longest is forgotten first. */
export const countedNamesLimit = 20_000;

const slotMs = 5_000;
/** One more than a minute holds: no 60 seconds, wherever they begin, see more than the limit. */
const slotCount = 13;

interface Slot {
  readonly number: number;
  count: number;
}

/** Counts tries by name over any 60 seconds, in bounded memory. */
export class RateWindow {
  readonly #limit: number;
  readonly #clock: Clock;
  /** The name that was silent longest comes first. */
  readonly #slots = new Map<string, Slot[]>();

  constructor(limit: number, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  get size(): number {
    return this.#slots.size;
  }

  /** Counts one try. Throws 429 when the minute is full; such a try is not counted. */
  count(name: string): void {
    const now = this.#clock.monotonic();
    const current = Math.floor(now / slotMs);
    const slots = this.#slots.get(name)?.filter((slot) => slot.number > current - slotCount) ?? [];
    this.#slots.delete(name);
    this.#slots.set(name, slots);
    this.#forgetSome(current);
    const used = slots.reduce((sum, slot) => sum + slot.count, 0);
    if (used >= this.#limit) {
      const first = slots[0]?.number ?? current;
      throw tooMany(Math.ceil(((first + slotCount) * slotMs - now) / 1000));
    }
    const last = slots.at(-1);
    if (last?.number === current) last.count += 1;
    else slots.push({ number: current, count: 1 });
  }

  /** Every name is followed by two looks at the oldest, so the map shrinks when names get fewer. */
  #forgetSome(current: number): void {
    let looks = 2;
    for (const [name, slots] of this.#slots) {
      looks -= 1;
      const isOver = (slots.at(-1)?.number ?? current) <= current - slotCount;
      if (!isOver && this.#slots.size <= countedNamesLimit) return;
      this.#slots.delete(name);
      if (looks === 0) return;
    }
  }
}

export function tooMany(waitSeconds: number): GatewayError {
  const wait = Math.max(1, waitSeconds);
  return new GatewayError("too_many_requests", {
    message: `Too many requests. Please wait ${wait} s and try again.`,
    headers: { "retry-after": String(wait), "retry-after-ms": String(wait * 1000) },
  });
}
