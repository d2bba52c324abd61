import { AgingMap } from "../../../domain/limits/aging-map.ts";
import type { ScopeCharge } from "./scope-charge.ts";

// Far above any model's answer, and small enough that sums of a window stay exact integers.
const largestTokenCount = 2 ** 40;

export interface Reservation {
  readonly slot: number;
  /** In that slot; a refund is at most that. */
  readonly reserved: number;
  readonly charges: readonly ScopeCharge[];
  readonly expiresAtMs: number;
  /** What is charged for the call by now. */
  tokens: number;
  /** What it may use beyond that. */
  overrun: number;
}

/** What calls under way have reserved; abandoned ones are forgotten after their lifetime. */
export class Reservations {
  readonly #byCall: AgingMap<Reservation>;
  /** Of calls that may use more than is charged for them, until they end. */
  readonly #overrunning = new Map<string, Reservation>();

  constructor(lifetimeMs: number, nowMs: number) {
    this.#byCall = new AgingMap(lifetimeMs, nowMs);
  }

  get size(): number {
    return this.#byCall.size + this.#overrunning.size;
  }

  advance(nowMs: number): void {
    this.#byCall.advance(nowMs);
  }

  set(callId: string, reservation: Reservation): void {
    (reservation.overrun > 0 ? this.#overrunning : this.#byCall).set(callId, reservation);
  }

  touch(callId: string): Reservation | undefined {
    return this.#overrunning.get(callId) ?? this.#byCall.touch(callId);
  }

  take(callId: string): Reservation | undefined {
    const overrunning = this.#overrunning.get(callId);
    if (overrunning === undefined) return this.#byCall.take(callId);
    this.#overrunning.delete(callId);
    return overrunning;
  }
}

export function isTokenCount(tokens: number): boolean {
  return Number.isInteger(tokens) && tokens >= 0 && tokens <= largestTokenCount;
}
