import type { LimitScope, LimitState, LimitUnit } from "../../domain/limits/limit-scope.ts";
import { countedSlots, guaranteeSlots } from "../../domain/limits/slots.ts";
import type { UsageWindow } from "./window.ts";
import type { LimitRequest, RefusedByLimit } from "./limit-store.ts";

/** The wait sent to a call that must wait until others end. */
const overrunWaitMs = 2_000;

interface Asked {
  readonly charges: readonly ScopeWindow[];
  readonly demand: Demand;
  /** What the call may use beyond its tokens. */
  readonly overrun: number;
  readonly now: number;
}

/** Undefined: the request is admitted. */
export function refusalFor(asked: Asked, random: () => number): RefusedByLimit | undefined {
  const { charges } = asked;
  if (!charges.some(isAudited)) return refusalBy(asked, random);
  return refusalBy({ ...asked, charges: charges.filter((of) => !isAudited(of)) }, random);
}

/** What limits in audit would refuse. Undefined: nothing. */
export function auditedRefusal(asked: Asked, random: () => number): RefusedByLimit | undefined {
  const charges = asked.charges.filter(isAudited);
  return charges.length === 0 ? undefined : refusalBy({ ...asked, charges }, random);
}

function isAudited({ scope }: ScopeWindow): boolean {
  return scope.isAudited === true;
}

function refusalBy(asked: Asked, random: () => number): RefusedByLimit | undefined {
  const { charges, overrun } = asked;
  const hopeless = overrun > 0 && charges.find(({ scope }) => overrun > overrunLimit(scope));
  if (hopeless) return overrunRefusal(hopeless, asked, undefined);
  const refusal = refusalOf(asked, random);
  if (refusal !== undefined || overrun === 0) return refusal;
  const refusing = charges.find(
    ({ scope, window }) => window.overrun + overrun > overrunLimit(scope),
  );
  return refusing && overrunRefusal(refusing, asked, withJitter(overrunWaitMs, random));
}

/**
 * Undefined: no limit refuses the request. Else by a scope that can never take it, or by the first that
 * cannot take it now, with the longest wait of all, so that a caller that obeys it is not refused by
 * the next scope.
 */
function refusalOf(
  { charges, demand, now }: Asked,
  random: () => number,
): RefusedByLimit | undefined {
  let refusing: ScopeWindow | undefined;
  let longestMs: number | undefined = 0;
  for (const charge of charges) {
    if (!isBroken(charge, demand)) continue;
    const { limit, unit } = charge.scope;
    const waitMs = charge.window.waitMs(limit, demand[unit], now);
    if (waitMs === undefined) {
      refusing = charge;
      longestMs = undefined;
      break;
    }
    longestMs = Math.max(longestMs, waitMs);
    refusing ??= charge;
  }
  if (refusing === undefined) return undefined;
  return {
    ...refusedBy(refusing, charges, now),
    dimension: refusing.scope.unit,
    freeAfterMs: longestMs === undefined ? undefined : Math.ceil(longestMs),
    retryAfterMs: withJitter(longestMs, random),
  };
}

/** The end of running calls cannot be predicted; most end soon. */
function overrunRefusal(
  refusing: ScopeWindow,
  { charges, overrun, now }: Asked,
  retryAfterMs: number | undefined,
): RefusedByLimit {
  const { window, scope } = refusing;
  return {
    ...refusedBy(refusing, charges, now),
    dimension: "tokens",
    freeAfterMs: undefined,
    retryAfterMs,
    overrun: { limit: overrunLimit(scope), used: window.overrun, asked: overrun },
  };
}

function refusedBy(refusing: ScopeWindow, charges: readonly ScopeWindow[], now: number) {
  return {
    isAdmitted: false,
    scopeId: refusing.scope.id,
    state: stateOf(refusing, charges, now),
    debt: siblingOf(refusing, charges, "tokens")?.window.debt ?? 0,
  } as const;
}

/** A scope of a request with its window, which is advanced to the current slot. */
export interface ScopeWindow {
  readonly scope: LimitScope;
  readonly window: UsageWindow;
}

export function firstOf(charges: readonly ScopeWindow[]): ScopeWindow {
  const [first] = charges;
  if (first === undefined) throw new RangeError("a limit request names at least one scope");
  return first;
}

/** How much of each unit a request needs. */
export type Demand = Readonly<Record<LimitUnit, number>>;

/** How many slots the window of a scope counts. */
export function countedSlotsOf({ window }: LimitScope): number {
  return window === "minute" ? countedSlots : guaranteeSlots(window.seconds);
}

/** The limit beyond which use is a debt. */
export function heldTo({ isShared = false, isAudited = false, limit }: LimitScope): number {
  return isShared || isAudited ? Number.POSITIVE_INFINITY : limit;
}

export function overrunLimit({ limit, overrunFactor = Infinity, unit }: LimitScope): number {
  return unit === "requests" ? Infinity : limit * overrunFactor;
}

/** A request that is already counted is under no limit of requests. */
function isBroken({ scope, window }: ScopeWindow, demand: Demand): boolean {
  const { unit, limit } = scope;
  if (unit === "requests" && demand.requests === 0) return false;
  return window.isOver(limit, demand[unit]);
}

/** The state of a scope's id in both units. */
export function stateOf(of: ScopeWindow, charges: readonly ScopeWindow[], now: number): LimitState {
  const requests = siblingOf(of, charges, "requests");
  const tokens = siblingOf(of, charges, "tokens");
  const limitRequests = requests?.scope.limit ?? Infinity;
  const limitTokens = tokens?.scope.limit ?? Infinity;
  return {
    limitRequests,
    limitTokens,
    remainingRequests: remainingOf(requests),
    remainingTokens: remainingOf(tokens),
    resetRequestsMs: requests?.window.resetMs(now) ?? 0,
    resetTokensMs: tokens?.window.resetMs(now) ?? 0,
  };
}

/** Below 0 what audit has served beyond the limit. */
function remainingOf(of: ScopeWindow | undefined): number {
  if (of === undefined) return Infinity;
  const { scope, window } = of;
  return isAudited(of) ? scope.limit - window.charged : window.remaining(scope.limit);
}

/** The scope of the same id and sort of window for a unit; undefined: none is among the charges. */
function siblingOf(
  charge: ScopeWindow,
  charges: readonly ScopeWindow[],
  unit: LimitUnit,
): ScopeWindow | undefined {
  const { id, window } = charge.scope;
  if (charge.scope.unit === unit) return charge;
  for (const other of charges) {
    const { scope } = other;
    if (scope.unit !== unit || scope.id !== id) continue;
    if ((scope.window === "minute") === (window === "minute")) return other;
  }
  return undefined;
}

const largestJitter = 0.1;
/** Clients that retry by themselves ignore a longer `retry-after`. */
const longestHonouredMs = 60_000;

/**
 * Adds jitter to a wait, so that callers refused together do not retry together. Never shortens it,
 * and never lengthens it beyond a minute.
 */
export function withJitter(waitMs: number | undefined, random: () => number): number | undefined {
  if (waitMs === undefined) return undefined;
  const jitteredMs = waitMs * (1 + largestJitter * random());
  return Math.ceil(Math.max(waitMs, Math.min(jitteredMs, longestHonouredMs)));
}

/** What was asked of a process that decides by itself, within its share of the limits. */
type AskedOfShare = Pick<LimitRequest, "scopes" | "tokens" | "mostTokens">;

/** By then a process that is replaced has ended, in most cases. */
const wholeBackMs = 2_000;

/**
 * The refusal by a share of the limits, with the figures of the whole limits. `waitMs`: sent for a
 * request that is too large only for the share.
 */
export function refusedByShare(
  refusal: RefusedByLimit,
  asked: AskedOfShare,
  waitMs: number = wholeBackMs,
): RefusedByLimit {
  const state = stateOfWhole(refusal.state, asked.scopes, refusal.scopeId);
  const { limitRequests, limitTokens } = refusal.state;
  const share = refusal.dimension === "tokens" ? limitTokens : limitRequests;
  if (refusal.retryAfterMs !== undefined || !fitsWhole(asked)) return { ...refusal, state, share };
  const freeAfterMs = refusal.overrun === undefined ? waitMs : undefined;
  return { ...refusal, state, share, freeAfterMs, retryAfterMs: waitMs };
}

/** Callers see the limits of their plan, and what is left of the share. */
export function stateOfWhole(
  state: LimitState,
  scopes: readonly LimitScope[],
  id: string | undefined,
): LimitState {
  const limitOf = (unit: LimitScope["unit"]): number =>
    scopes.find((scope) => scope.id === id && scope.unit === unit)?.limit ?? Infinity;
  return { ...state, limitRequests: limitOf("requests"), limitTokens: limitOf("tokens") };
}

/** Whether a request fits an empty window of the whole limits. */
function fitsWhole({ scopes, tokens, mostTokens = tokens }: AskedOfShare): boolean {
  return scopes.every(({ unit, limit, overrunFactor = Infinity }) =>
    unit === "requests"
      ? limit >= 1
      : limit >= tokens && mostTokens - tokens <= limit * overrunFactor,
  );
}
