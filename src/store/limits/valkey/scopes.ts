import type { LimitScope } from "../../../domain/limits/limit-scope.ts";
import { nameOf } from "../window.ts";

/** The windows of a request in the server. */
export interface RequestWindows {
  readonly scopes: readonly LimitScope[];
  /** The account whose limits are decided in one step. */
  readonly account: string;
  /** The key that says since when the server has all data. */
  readonly sinceKey: string;
  /** The key of the window of each scope. */
  readonly keys: readonly string[];
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
    const keys = scopes.map((scope) => {
      const { id, unit, seconds } = nameOf(scope);
      const sort = `${seconds === 0 ? "c" : "g"}${unit === "requests" ? "r" : "t"}`;
      return `${prefix}:{${shard}}:${sort}:${account}:${id}`;
    });
    return { scopes, account, sinceKey: sinceKeyOf(shard), keys };
  }
}

export function shardOf(name: string, shards: number): number {
  return shards === 1 ? 0 : Bun.hash.crc32(name) % shards;
}

export function sinceKeyOf(shard: number): string {
  return `${prefix}:{${shard}}:since`;
}
