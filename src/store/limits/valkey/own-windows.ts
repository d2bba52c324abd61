import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import { AgingMap } from "../../../domain/limits/aging-map.ts";
import type { LimitScope } from "../../../domain/limits/limit-scope.ts";
import { longestGuaranteeSeconds, slotMs } from "../../../domain/limits/slots.ts";
import { UsageWindow } from "../window.ts";
import {
  countedSlotsOf,
  refusalFor,
  refusedByShare,
  type Demand,
  type ScopeWindow,
} from "../decision.ts";
import type { RefusedByLimit } from "../limit-store.ts";
import type { RequestWindows } from "./scopes.ts";

/** What this process has admitted under a scope, in slots of the server's time. */
export interface OwnWindow {
  readonly key: string;
  /** As the last request had it. */
  scope: LimitScope;
  readonly window: UsageWindow;
  /** What of it this process has granted by itself: the server may know less, or in other slots. */
  alone: UsageWindow | undefined;
  /** The server's number of its last change that this process has seen. */
  number: number;
  /** When the server last heard what running calls could still use beyond their charges. */
  openToldAtMs: number;
}

/** Longer than use counts. */
const minuteLifeMs = 130_000;
const guaranteeLifeMs = (longestGuaranteeSeconds + 60) * slotMs;

/** The windows of all scopes that this process has asked for lately. */
export class OwnWindows {
  readonly #minutes: AgingMap<OwnWindow>;
  readonly #guarantees: AgingMap<OwnWindow>;

  constructor(nowMs: number) {
    // Those of long calls stay.
    const keeps = ({ window }: OwnWindow): boolean => window.overrun > 0;
    this.#minutes = new AgingMap(minuteLifeMs, nowMs, keeps);
    this.#guarantees = new AgingMap(guaranteeLifeMs, nowMs, keeps);
  }

  advance(nowMs: number): void {
    this.#minutes.advance(nowMs);
    this.#guarantees.advance(nowMs);
  }

  of({ keys, scopes }: RequestWindows, slot: number): readonly OwnWindow[] {
    return scopes.map((scope, index) => {
      const key = keys[index] ?? "";
      const isMinute = scope.window === "minute";
      const all = isMinute ? this.#minutes : this.#guarantees;
      let own = all.touch(key);
      if (own === undefined) {
        const window = new UsageWindow(slot, countedSlotsOf(scope));
        own = { key, scope, window, alone: undefined, number: 0, openToldAtMs: 0 };
        all.set(key, own);
      }
      own.scope = scope;
      own.window.advance(slot);
      if (!isMinute) own.window.count(countedSlotsOf(scope));
      return own;
    });
  }

  /** As `of`, without keeping a window or changing one. */
  peek({ keys, scopes }: RequestWindows, slot: number): readonly ScopeWindow[] {
    return scopes.map((scope, index) => {
      const isMinute = scope.window === "minute";
      const all = isMinute ? this.#minutes : this.#guarantees;
      const kept = all.peek(keys[index] ?? "")?.window;
      const counted = countedSlotsOf(scope);
      const window = kept?.copy() ?? new UsageWindow(slot, counted);
      window.advance(slot);
      if (!isMinute) window.count(counted);
      return { scope, window };
    });
  }

  /** Those whose open use the server has last heard of before a time. */
  openSince(toldAtMs: number): readonly OwnWindow[] {
    const due: OwnWindow[] = [];
    for (const all of [this.#minutes, this.#guarantees]) {
      for (const [, own] of all.entries()) {
        if (own.window.overrun > 0 && own.openToldAtMs <= toldAtMs) due.push(own);
      }
    }
    return due;
  }
}

export function isOfTokens({ scope }: Pick<OwnWindow, "scope">): boolean {
  return scope.unit === "tokens";
}

/** What a call asks for. */
export interface Demanded {
  readonly scopes: readonly LimitScope[];
  readonly demand: Demand;
  readonly overrun: number;
}

/** Charges what a call asks for, in the slot in which the server or this process admitted it. */
export function charge({ own, demand }: Charged, slot: number): void {
  for (const { scope, window } of own) {
    window.advance(slot);
    window.adjust(slot, demand[scope.unit]);
  }
}

/** As `charge`, for what the server has not decided. */
export function chargeAlone(charged: Charged, slot: number): void {
  charge(charged, slot);
  for (const of of charged.own) {
    if (of.scope.window !== "minute") continue;
    of.alone ??= new UsageWindow(slot);
    of.alone.advance(slot);
    of.alone.adjust(slot, charged.demand[of.scope.unit]);
  }
}

/** What the server must know of. */
export function chargedByServer({ window, alone }: OwnWindow, slot: number): number {
  alone?.advance(slot);
  return window.charged - (alone?.charged ?? 0);
}

export interface Charged extends Pick<Demanded, "demand"> {
  readonly own: readonly OwnWindow[];
}

/** Adds what calls may use beyond their charges; negative when they end. */
export function openOverrun(own: readonly OwnWindow[], amount: number): void {
  if (amount === 0) return;
  for (const of of own) if (isOfTokens(of)) of.window.openOverrun(amount);
}

export interface ShareTerms {
  readonly processes: number;
  readonly nowMs: number;
  /** The wait sent for a request that is too large only for the share. */
  readonly waitMs: number;
  readonly random: () => number;
  /** Default: what refuses the request. */
  readonly decide?: typeof refusalFor;
}

/**
 * Decides within the share of this process, `max(1, floor(limit / processes))`, from what it has
 * admitted itself. Undefined: admitted.
 */
export function refusalByShare(
  own: readonly OwnWindow[],
  { scopes, demand, overrun }: Demanded,
  { processes, nowMs, waitMs, random, decide = refusalFor }: ShareTerms,
): RefusedByLimit | undefined {
  const charges = own.map(({ scope, window }) => ({
    scope: { ...scope, limit: shareOf(scope.limit, processes) },
    window,
  }));
  const refusal = decide({ charges, demand, overrun, now: nowMs }, random);
  const { tokens } = demand;
  return (
    refusal && refusedByShare(refusal, { scopes, tokens, mostTokens: tokens + overrun }, waitMs)
  );
}

function shareOf(limit: number, processes: number): number {
  return limit < 1 ? limit : Math.max(1, Math.floor(limit / processes));
}

/** What callers get whose plan admits nothing while the shared limits cannot be decided. */
export function limitsClosed(cause: unknown): GatewayError {
  return new GatewayError("model_unavailable", {
    message:
      "The limits of your API key cannot be checked, because the store that counts them does not " +
      "answer. Please retry your request.",
    headers: { "retry-after": "1" },
    cause,
    explanation: {
      rule: "limits_unavailable",
      summary:
        "The limits of the key could not be decided: the server of limits.store does not answer, " +
        "or has lost its data, and the plan has when_limits_unavailable: closed. `sluice status` " +
        "shows its state.",
    },
  });
}
