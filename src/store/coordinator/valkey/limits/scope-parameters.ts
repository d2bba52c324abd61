import type { LimitScope } from "../../../../domain/limits/limit-scope.ts";
import { nameOf, type NamedScope } from "../../../../domain/limits/scope-use.ts";
import { countedSlots, guaranteeSlots } from "../../../../domain/limits/slots.ts";
import { heldTo, overrunLimit } from "../../memory/scope-charge.ts";

/** The windows of a request, each once, and its scopes by the number of their window. */
export interface RequestWindows {
  readonly keys: readonly [string, ...string[]];
  /** One scope of each window. */
  readonly scopes: readonly LimitScope[];
  /** From 1, in the order of the request's scopes. */
  readonly numbers: readonly number[];
}

const prefix = "sluice";

export function tagOf({ owner, id }: Pick<LimitScope, "owner" | "id">): string {
  return owner ?? id;
}

/** The key of a window. Its braces keep all keys of an account in one slot of a cluster. */
export function windowKey(tag: string, { id, unit, seconds }: NamedScope): string {
  return `${prefix}:{${tag}}:${seconds === 0 ? "c" : "g"}:${id}:${unit === "requests" ? "r" : "t"}`;
}

export function callKey(tag: string, callId: string): string {
  return `${prefix}:{${tag}}:call:${callId}`;
}

export function epochKey(tag: string): string {
  return `${prefix}:{${tag}}:epoch`;
}

export function leaseKey(tag: string, id: string): string {
  return `${prefix}:{${tag}}:lease:${id}`;
}

export function includeKey(tag: string, id: string): string {
  return `${prefix}:{${tag}}:included:${id}`;
}

/** The scopes of a call are the same list from its count to its settlement. */
const known = new WeakMap<readonly LimitScope[], RequestWindows>();

export function windowsOf(scopes: readonly LimitScope[]): RequestWindows {
  let windows = known.get(scopes);
  if (windows === undefined) {
    windows = findWindows(scopes);
    known.set(scopes, windows);
  }
  return windows;
}

function findWindows(scopes: readonly LimitScope[]): RequestWindows {
  const keys: string[] = [];
  const ofWindows: LimitScope[] = [];
  const numbers = scopes.map((scope) => {
    const key = windowKey(tagOf(scope), nameOf(scope));
    const known = keys.indexOf(key);
    if (known >= 0) return known + 1;
    ofWindows.push(scope);
    return keys.push(key);
  });
  const [first, ...rest] = keys;
  if (first === undefined) throw new RangeError("a limit request names at least one scope");
  return { keys: [first, ...rest], scopes: ofWindows, numbers };
}

/** The part of a script's parameters that describes the windows and the scopes of a request. */
export function scopeParameters(
  scopes: readonly LimitScope[],
  { keys, scopes: ofWindows, numbers }: RequestWindows,
): string[] {
  const parameters = [String(keys.length)];
  for (const scope of ofWindows) parameters.push(String(newSlotsOf(nameOf(scope))));
  parameters.push(String(scopes.length));
  for (const [index, scope] of scopes.entries()) {
    const { limit } = scope;
    const numbersOf = [numbers[index] ?? 1, slotsOf(scope), limit, heldTo(scope)];
    for (const number of [...numbersOf, overrunLimit(scope)]) parameters.push(String(number));
  }
  return parameters;
}

export function slotsOf({ window }: LimitScope): number {
  return window === "minute" ? countedSlots : guaranteeSlots(window.seconds);
}

/** The slots of a window that is not brought to the period of a request yet. */
export function newSlotsOf({ seconds }: Pick<NamedScope, "seconds">): number {
  return seconds === 0 ? countedSlots : guaranteeSlots(60);
}
