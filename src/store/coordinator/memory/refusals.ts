import type { RefusedByLimit } from "../../store.ts";
import { withJitter } from "./retry-jitter.ts";
import {
  findRefusal,
  firstOf,
  isOverLimit,
  overrunLimit,
  siblingOf,
  slotsOf,
  stateOf,
  type RefusedRequest,
  type ScopeWindow,
} from "./scope-charge.ts";

/** The wait sent to a call that must wait until others end. */
const overrunWaitMs = 2_000;

interface Asked extends Omit<RefusedRequest, "first"> {
  /** What the call may use beyond its tokens. */
  readonly overrun: number;
}

/** Undefined: the request is admitted. */
export function refusalFor(asked: Asked, random: () => number): RefusedByLimit | undefined {
  const { charges, overrun, now } = asked;
  const hopeless = overrun > 0 && charges.find(({ scope }) => overrun > overrunLimit(scope));
  if (hopeless) return overrunRefusal({ refusing: hopeless, charges, overrun, now }, random);
  const refusal = refusalOf(asked, random);
  if (refusal !== undefined) return refusal;
  const refusing = overrun > 0 && charges.find((charge) => isOverrunning(charge, overrun));
  return refusing ? overrunRefusal({ refusing, charges, overrun, now }, random) : undefined;
}

function isOverrunning({ scope, window }: ScopeWindow, overrun: number): boolean {
  return window.overrun + overrun > overrunLimit(scope);
}

/** Undefined: no limit refuses the request. `roomWaitMs`: until there is room for its scopes. */
function refusalOf(
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
  readonly refusing: ScopeWindow;
  readonly charges: readonly ScopeWindow[];
  readonly overrun: number;
  readonly now: number;
}

function overrunRefusal(
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

function refusedBy(refusing: ScopeWindow, charges: readonly ScopeWindow[], now: number) {
  return {
    isAdmitted: false,
    scopeId: refusing.scope.id,
    state: stateOf(refusing, charges, now),
    debt: siblingOf(refusing, charges, "tokens")?.window.debt ?? 0,
    slots: slotsOf(refusing, charges, now),
  } as const;
}
