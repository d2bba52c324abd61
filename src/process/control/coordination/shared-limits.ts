import type { Clock } from "../../../domain/clock.ts";
import type { NamedScope, ScopeUse } from "../../../domain/limits/scope-use.ts";
import { countedSlots, slotAt, slotMs } from "../../../domain/limits/slots.ts";
import {
  createMemoryLimitStore,
  type MemoryLimitStore,
  type MemoryLimitStoreOptions,
} from "../../../store/coordinator/memory/limit-store.ts";
import type { OpenCall } from "../../../store/coordinator/memory/handed-over.ts";
import type { PastAdmission } from "../../../store/store.ts";
import {
  useFromWire,
  useToWire,
  type HeldCall,
  type HeldLimits,
  type TakenLimits,
  type WireUse,
  type WireUsed,
} from "../../link/limit-use-wire.ts";
import { scopesFromWire, scopesToWire } from "../../link/limit-wire.ts";
import { Leases } from "./leases.ts";
import { limitHandlers } from "./limit-handlers.ts";
import type { Handlers } from "../../link/link.ts";
import type { LimitMessages } from "../../link/messages.ts";
import type { Member } from "./member.ts";

export type LimitBounds = Pick<MemoryLimitStoreOptions, "reservationTtlMs" | "scopeLimit">;

export interface SharedLimitsOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly bounds: LimitBounds;
  /** Workers that would share the rest if control ended now. */
  readonly workers: () => number;
}

/** The limits of all workers, and what workers must know about them in case control ends. */
export class SharedLimits {
  readonly store: MemoryLimitStore;
  readonly #clock: Clock;
  readonly #workers: () => number;
  readonly #leases: Leases;
  /** Common time minus that of this process. */
  #offsetMs: number;
  #generation = 1;
  #sequence = 0;
  #toldWorkers = 0;

  constructor({ clock, random, bounds, workers }: SharedLimitsOptions) {
    this.#clock = clock;
    this.#workers = workers;
    this.#offsetMs = -clock.monotonic();
    const common: Clock = {
      now: () => clock.now(),
      monotonic: () => this.now(),
      schedule: (run, delayMs) => clock.schedule(run, delayMs),
    };
    this.store = createMemoryLimitStore({ clock: common, random, ...bounds, isFollowed: true });
    this.#leases = new Leases({ store: this.store, now: () => this.now(), workers });
  }

  /** Answers the questions of a connected worker. */
  ofWorker(member: Member): { readonly handlers: Handlers<LimitMessages>; end(): void } {
    const leases = this.#leases.ofWorker(() => member.link);
    return {
      handlers: limitHandlers(this.store, leases, member),
      end: () => {
        this.#abandon(member);
        leases.end();
      },
    };
  }

  /** In common time. */
  now(): number {
    return this.#clock.monotonic() + this.#offsetMs;
  }

  /** Continues where the last control process ended, according to the worker that heard most. */
  goOn(members: readonly Member[], seen: readonly WireUse[]): void {
    for (const { report, reportedAtMs } of members) {
      const { generation = 0, now = 0 } = report?.limits ?? {};
      if (generation === 0) continue;
      this.#generation = Math.max(this.#generation, generation + 1);
      this.#offsetMs = Math.max(this.#offsetMs, now - reportedAtMs);
    }
    this.store.include(seen.map(useFromWire));
  }

  /**
   * Adds the use of a scope that the ledger has and the workers do not know, as if it happened now:
   * how it is spread over the seconds is unknown. The ledger may have everything that workers know.
   */
  add(admitted: readonly PastAdmission[]): void {
    const known = new Map<string, ScopeUse>();
    for (const use of this.store.held()) known.set(keyOf(use.scope), use);
    const missing = new Map<ScopeUse, number>();
    const unknown: PastAdmission[] = [];
    for (const past of admitted) {
      const left = { requests: 0, tokens: 0 };
      for (const unit of ["requests", "tokens"] as const) {
        const { scopeId: id, isGuarantee = false } = past;
        const use = known.get(keyOf({ id, unit, seconds: isGuarantee ? 1 : 0 }));
        if (use === undefined) left[unit] = past[unit];
        else if (isCounted(past, use)) {
          missing.set(use, (missing.get(use) ?? -sumOf(use)) + past[unit]);
        }
      }
      if (left.requests + left.tokens > 0) unknown.push({ ...past, ...left });
    }
    this.store.restore(unknown);
    const slot = slotAt(this.now());
    for (const [use, amount] of missing) {
      if (amount > 0) this.store.include([{ ...use, slot, amounts: [amount], debt: 0 }]);
    }
  }

  /** Counts what a worker admitted alone, and takes over its calls. */
  takeOver({ own, calls, notes }: HeldLimits, { openCalls }: Member): void {
    // The time of the worker may lag behind that of this process.
    const later = <Use extends { readonly slot: number }>(use: Use): Use => ({
      ...use,
      slot: use.slot + 1,
    });
    this.store.include(own.map((use) => later(useFromWire(use))));
    const latest = slotAt(this.now());
    for (const { callId, scopes, tokens, mostTokens, slot, charged, isOwn } of calls) {
      const known = slot ?? Number.NEGATIVE_INFINITY;
      const at = isOwn ? Math.min(known + 1, latest) : known;
      const call = { callId, scopes: scopesFromWire(scopes), tokens, mostTokens, charged };
      this.store.adopt({ ...call, slot: at });
      openCalls.add(callId);
    }
    for (const { callId, tokens, isFinal } of notes) {
      if (!openCalls.has(callId)) continue;
      if (isFinal) openCalls.delete(callId);
      if (isFinal) this.store.settle(callId, tokens);
      else this.store.use(callId, tokens);
    }
  }

  /** What an ended worker had reserved stays charged. */
  #abandon({ openCalls }: Member): void {
    for (const callId of openCalls) this.store.settle(callId, Number.NaN);
    openCalls.clear();
  }

  /** Gives everything to a worker that decides alone from now on; nothing is left here. */
  giveAway(): Omit<TakenLimits, "isUnknown"> {
    const { uses, calls } = this.store.handOver();
    const told = this.#told({ uses: uses.map(useToWire), isAll: true });
    this.store.clear();
    return { told, calls: calls.map(heldCall) };
  }

  /** What has changed since the last call; undefined: nothing. */
  changes(): WireUsed | undefined {
    const workers = this.#workers();
    const uses = this.store.takeChanged();
    if (uses.length === 0 && workers === this.#toldWorkers) return undefined;
    this.#toldWorkers = workers;
    this.#sequence += 1;
    return this.#told({ uses: uses.map(useToWire), isAll: false });
  }

  all(): WireUsed {
    return this.#told({ uses: Array.from(this.store.held(), useToWire), isAll: true });
  }

  #told(uses: Pick<WireUsed, "uses" | "isAll">): WireUsed {
    const generation = this.#generation;
    const workers = this.#workers();
    return { generation, sequence: this.#sequence, now: this.now(), workers, ...uses };
  }
}

function heldCall({ scopes, mostTokens, ...call }: OpenCall): HeldCall {
  return {
    ...call,
    scopes: scopesToWire(scopes),
    mostTokens: mostTokens ?? call.tokens,
    isOwn: false,
  };
}

/** Caps and guarantees of one id count separately. */
function keyOf({ id, unit, seconds }: NamedScope): string {
  return `${seconds === 0 ? "cap" : "guarantee"} ${unit} ${id}`;
}

function isCounted({ ageMs }: PastAdmission, { scope }: ScopeUse): boolean {
  return ageMs < (scope.seconds === 0 ? countedSlots : scope.seconds) * slotMs;
}

function sumOf({ amounts, debt }: ScopeUse): number {
  return amounts.reduce((sum, amount) => sum + amount, debt);
}
