import type { RefusedByLimit } from "../../store.ts";
import { withJitter } from "./retry-jitter.ts";
import {
  findRefusal,
  isOverLimit,
  overrunLimit,
  siblingOf,
  slotsOf,
  stateOf,
  type RefusedRequest,
  type ScopeCharge,
} from "./scope-charge.ts";
import { firstOf } from "./scope-windows.ts";

/** The wait sent to a call that must wait until others end. */
const overrunWaitMs = 2_000;

/** Undefined: no limit refuses the request. `roomWaitMs`: until there is room for its scopes. */
export function refusalOf(
  { charges, demand, roomWaitMs, now }: Omit<RefusedRequest, "first">,
  random: () => number,
): RefusedByLimit | undefined {
  if (roomWaitMs === 0 && !isOverLimit(charges, demand)) return undefined;
  const first = firstOf(charges);
  const { refusing, waitMs } = findRefusal({ first, charges, demand, roomWaitMs, now });
  return {
    ...refusedBy(refusing, charges, now),
    dimension: refusing.scope.unit,
    freeAfterMs: waitMs === undefined ? undefined : Math.ceil(waitMs),
    retryAfterMs: withJitter(waitMs, random),
  };
}

interface Overrunning {
  readonly refusing: ScopeCharge;
  readonly charges: readonly ScopeCharge[];
  readonly overrun: number;
  readonly now: number;
}

export function overrunRefusal(
  { refusing, charges, overrun, now }: Overrunning,
  random: () => number,
): RefusedByLimit {
  const limit = overrunLimit(refusing.scope);
  // The end of running calls cannot be predicted; most end soon.
  const waitMs = overrun > limit ? undefined : overrunWaitMs;
  return {
    ...refusedBy(refusing, charges, now),
    dimension: "tokens",
    freeAfterMs: undefined,
    retryAfterMs: withJitter(waitMs, random),
    overrun: { limit, used: refusing.window.overrun, asked: overrun },
  };
}

function refusedBy(refusing: ScopeCharge, charges: readonly ScopeCharge[], now: number) {
  return {
    isAdmitted: false,
    scopeId: refusing.scope.id,
    state: stateOf(refusing, charges, now),
    debt: siblingOf(refusing, charges, "tokens")?.window.debt ?? 0,
    slots: slotsOf(refusing, charges, now),
  } as const;
}
