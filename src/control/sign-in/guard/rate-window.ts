import ipaddr from "ipaddr.js";
import type { Clock } from "../../../domain/clock.ts";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import { SlidingSum } from "../../../domain/limits/sliding-sum.ts";

/** Most names counted at a time; the least recently used one is dropped first. */
export const countedNamesLimit = 20_000;

const slotMs = 5_000;
/** One slot more than a minute has, so that no period of 60 seconds exceeds the limit. */
const slotCount = 13;

/** Counts attempts by name over any 60 seconds, in bounded memory. */
export class RateWindow {
  readonly #limit: number;
  readonly #clock: Clock;
  /** The least recently used name comes first. */
  readonly #tries = new Map<string, SlidingSum>();

  constructor(limit: number, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  get size(): number {
    return this.#tries.size;
  }

  /** Counts one attempt. Throws 429 when the minute is full; such an attempt is not counted. */
  count(name: string): void {
    const now = this.#clock.monotonic();
    const slot = Math.floor(now / slotMs);
    const tries = this.#tries.get(name) ?? new SlidingSum(slotCount, slot);
    this.#tries.delete(name);
    this.#tries.set(name, tries);
    const isFull = tries.sumAt(slot) >= this.#limit;
    if (!isFull) tries.add(1);
    forgetOldest(this.#tries, (old) => old.sumAt(slot) === 0);
    if (!isFull) return;
    const freeAt = (tries.slotFreeing(1) + slotCount) * slotMs;
    throw tooMany(Math.ceil((freeAt - now) / 1000));
  }
}

/** Looks at the two oldest entries only, and yet keeps the map small when fewer are added. */
export function forgetOldest<Value>(
  entries: Map<string, Value>,
  isOver: (value: Value) => boolean,
): void {
  let looks = 2;
  for (const [name, value] of entries) {
    looks -= 1;
    if (!isOver(value) && entries.size <= countedNamesLimit) return;
    entries.delete(name);
    if (looks === 0) return;
  }
}

/** An IPv4 address, or the /64 network of an IPv6 address, which is usually one customer's. */
export function addressGroup(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address;
  const network = ipaddr.IPv6.parse(address).parts.slice(0, 4);
  return `${network.map((part) => part.toString(16)).join(":")}::/64`;
}

export function tooMany(waitSeconds: number): GatewayError {
  const wait = Math.max(1, waitSeconds);
  return new GatewayError("too_many_requests", {
    message: `Too many requests. Please wait ${wait} s and try again.`,
    headers: { "retry-after": String(wait), "retry-after-ms": String(wait * 1000) },
  });
}
