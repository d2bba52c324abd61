import type { HeldPlace } from "../../admission/capacity/held-place.ts";
import type {
  BusyPool,
  BusyReason,
  EnterResult,
  HolderFacts,
  PlaceAsk,
  PlaceCandidate,
} from "../../admission/capacity/place.ts";
import type { CapacityClass } from "../../domain/usage/usage.ts";

/**
 * Places as JSON, which has no infinity: null means never. Arrays, because each call sends several.
 */

/** The worker's own id of a place that it asked for. */
export type PlaceId = number;

type WireCandidate = readonly [target: string, upstream: string, pool: string | null];

export type WirePlaceAsk = readonly [
  id: PlaceId,
  keyId: string,
  accountId: string,
  capacityClass: CapacityClass,
  provisionedPool: string | null,
  tokens: number,
  waitMs: number,
  candidates: readonly WireCandidate[],
];

type WireBusy = readonly [
  reason: BusyReason,
  retryAfterMs: number | null,
  position: number | null,
  waitedMs: number,
];

export type WireEntered = readonly [
  /** Index of the candidate that gave a place; -1: none. */
  at: number,
  refused: readonly WireBusy[],
  waitedMs: number,
  position: number | null,
  /** Whether tokens of the pool are reserved for it. */
  hasReservation: boolean,
];

/** A place that is given back. */
export type WireLeave = readonly [
  id: PlaceId,
  /** Its requests at the upstream that still run. */
  underWay: number,
];

/** Further requests at the upstream. */
export interface WireMore {
  readonly id: PlaceId;
  readonly count: number;
  /** 0: only places that are free now. */
  readonly waitMs: number;
  /** Set for requests outside any attempt. */
  readonly outside?: { readonly upstream: string; readonly isBound: boolean };
}

/** A place that the worker gave by itself, or that control must count again. */
export interface WireHeld {
  readonly id: PlaceId;
  readonly upstream: string;
  /** Requests that run at the upstream, or whose place is kept. */
  readonly requests: number;
  readonly isBound: boolean;
  /** Absent for requests outside any attempt, and after the place was given back. */
  readonly holder?: WireHolder;
}

/** What limits places: a pool, an upstream, or the concurrency limit of a target. */
export type WireBound = readonly [kind: "pool" | "upstream" | "target", name: string];

/** Places that workers hold beyond their shares. */
export type WireLent = readonly [kind: "pool" | "upstream", name: string, lent: number];

type WireHolder = readonly [
  keyId: string,
  capacityClass: CapacityClass,
  provisionedPool: string | null,
  target: string,
  pool: string | null,
];

/** What a worker asks for on behalf of a call. */
export type ReadAsk = Pick<PlaceAsk, "candidates" | "waitMs"> & {
  readonly request: Omit<PlaceAsk["request"], "callId">;
};

const longestWaitMs = 2 ** 31 - 1;

export function placeAskToWire(id: PlaceId, { request, candidates }: PlaceAsk, waitMs: number) {
  const { keyId, accountId, capacityClass, provisionedPool, tokens } = request;
  const ask: WirePlaceAsk = [
    id,
    keyId,
    accountId,
    capacityClass,
    provisionedPool ?? null,
    tokens,
    Math.min(waitMs, longestWaitMs),
    candidates.map(({ target }) => [target.id, target.upstream, target.pool ?? null]),
  ];
  return ask;
}

export function placeAskFromWire(ask: WirePlaceAsk): ReadAsk {
  const [, keyId, accountId, capacityClass, provisionedPool, tokens, waitMs, candidates] = ask;
  return {
    request: {
      keyId,
      accountId,
      capacityClass,
      provisionedPool: provisionedPool ?? undefined,
      tokens,
    },
    waitMs,
    candidates: candidates.map(candidateFromWire),
  };
}

export function enteredToWire(entered: EnterResult<HeldPlace>): WireEntered {
  const refused = entered.refused.map(busyToWire);
  if (!("place" in entered)) return [-1, refused, 0, null, false];
  const { place, at } = entered;
  return [at, refused, place.waitedMs, place.position ?? null, place.hasReservation];
}

export function refusedFromWire([, refused]: WireEntered): readonly BusyPool[] {
  return refused.map(([reason, retryAfterMs, position, waitedMs]) => ({
    busy: reason,
    retryAfterMs: retryAfterMs ?? Infinity,
    position: position ?? undefined,
    waitedMs,
  }));
}

export function holderToWire(
  { keyId, capacityClass, provisionedPool }: HolderFacts,
  { target }: PlaceCandidate,
): WireHolder {
  return [keyId, capacityClass, provisionedPool ?? null, target.id, target.pool ?? null];
}

export function holderFromWire(
  [keyId, capacityClass, provisionedPool, target, pool]: WireHolder,
  upstream: string,
): { readonly request: HolderFacts; readonly candidate: PlaceCandidate } {
  return {
    request: { keyId, capacityClass, provisionedPool: provisionedPool ?? undefined },
    candidate: candidateFromWire([target, upstream, pool]),
  };
}

function candidateFromWire([id, upstream, pool]: WireCandidate): PlaceCandidate {
  return { target: { id, upstream, pool: pool ?? undefined } };
}

function busyToWire({ busy, retryAfterMs, position, waitedMs }: BusyPool): WireBusy {
  return [busy, retryAfterMs === Infinity ? null : retryAfterMs, position ?? null, waitedMs];
}
