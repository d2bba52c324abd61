import { AgingMap } from "../../../domain/limits/aging-map.ts";
import type { OpenCall } from "./limits-state.ts";
import type { ScopeCharge } from "./scope-charge.ts";

export interface Reservation {
  readonly slot: number;
  /** Tokens charged in that slot, the most that it refunds. */
  readonly reserved: number;
  readonly charges: readonly ScopeCharge[];
  readonly expiresAtMs: number;
  /** Tokens charged for the call so far. */
  tokens: number;
  /** Tokens it may use beyond that. */
  overrun: number;
}

/** Reservations of calls in flight; abandoned ones are dropped after their lifetime. */
export class Reservations {
  readonly #byCall: AgingMap<Reservation>;
  /** Calls that may use more than is charged for them, kept until they end. */
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

  *open(nowMs: number): Iterable<OpenCall> {
    for (const [callId, reservation] of [...this.#byCall.entries(), ...this.#overrunning]) {
      const { charges, slot, reserved, tokens: charged, overrun, expiresAtMs } = reservation;
      if (nowMs >= expiresAtMs) continue;
      const scopes = charges.map(({ scope }) => scope);
      const mostTokens = Math.max(reserved, charged) + overrun;
      yield { callId, scopes, tokens: reserved, mostTokens, slot, charged };
    }
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
