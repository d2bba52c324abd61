import { type LimitScope, nameOf } from "../../../domain/limits/limit-scope.ts";
import { countedSlots, guaranteeSlots } from "../../../domain/limits/slots.ts";
import { heldTo, overrunLimit } from "../decision.ts";
import type { Parameter } from "./client.ts";

/** One window of a request. */
export interface WindowName {
  readonly key: string;
  /** One of its scopes; a request may name several. */
  readonly scope: LimitScope;
}

/** The windows of a request, each once, and its scopes by the number of their window. */
export interface RequestWindows {
  readonly scopes: readonly LimitScope[];
  /** The account whose limits are decided in one step. */
  readonly account: string;
  /** The key that says since when the server has all data. */
  readonly sinceKey: string;
  readonly windows: readonly WindowName[];
  /** From 1, in the order of the request's scopes. */
  readonly numbers: readonly number[];
}

const prefix = "sluice";

/** Names windows in the server; all of an account are in one slot of a cluster. */
export class WindowNames {
  readonly #shards: number;
  /** The scopes of a call are the same list from its count to its settlement. */
  readonly #known = new WeakMap<readonly LimitScope[], RequestWindows>();

  constructor(shards: number) {
    this.#shards = shards;
  }

  of(scopes: readonly LimitScope[]): RequestWindows {
    let known = this.#known.get(scopes);
    if (known === undefined) {
      known = this.#find(scopes);
      this.#known.set(scopes, known);
    }
    return known;
  }

  get sinceKeys(): readonly string[] {
    return Array.from({ length: this.#shards }, (_, shard) => sinceKeyOf(shard));
  }

  #find(scopes: readonly LimitScope[]): RequestWindows {
    const [first] = scopes;
    if (first === undefined) throw new RangeError("a limit request names at least one scope");
    const account = first.owner ?? first.id;
    const shard = shardOf(account, this.#shards);
    const windows: WindowName[] = [];
    const numbers = scopes.map((scope) => {
      const { id, unit, seconds } = nameOf(scope);
      const sort = `${seconds === 0 ? "c" : "g"}${unit === "requests" ? "r" : "t"}`;
      const key = `${prefix}:{${shard}}:${sort}:${account}:${id}`;
      const index = windows.findIndex((window) => window.key === key);
      return index < 0 ? windows.push({ key, scope }) : index + 1;
    });
    return { scopes, account, sinceKey: sinceKeyOf(shard), windows, numbers };
  }
}

export function shardOf(name: string, shards: number): number {
  return shards === 1 ? 0 : Bun.hash.crc32(name) % shards;
}

function sinceKeyOf(shard: number): string {
  return `${prefix}:{${shard}}:since`;
}

/** The part of a script's parameters that describes the scopes of a request. */
export function scopeParameters(scopes: readonly LimitScope[], numbers: readonly number[]) {
  const parameters: Parameter[] = [scopes.length];
  for (const [index, scope] of scopes.entries()) {
    const limits = [scope.limit, heldTo(scope), overrunLimit(scope)];
    parameters.push(numbers[index] ?? 1, slotsOf(scope), ...limits.map(String));
  }
  return parameters;
}

export function slotsOf({ window }: LimitScope): number {
  return window === "minute" ? countedSlots : guaranteeSlots(window.seconds);
}

/** The slots of a window that is not brought to the period of a request yet. */
export function newSlotsOf({ window }: LimitScope): number {
  return window === "minute" ? countedSlots : guaranteeSlots(60);
}
