import { AgingMap } from "../domain/limits/aging-map.ts";
import type { LimitScope } from "../domain/limits/limit-scope.ts";
import type { Call } from "../snapshot/call.ts";
import { endUserScopeId, ownScopes } from "./plan-scopes.ts";

/** As long as a window of a limit, and a second. */
const lifetimeMs = 61_000;
/** Most end users of one account that have limits apart at a time. */
export const mostEndUsers = 100_000;

export interface EndUserScopesOptions {
  /** Default: `mostEndUsers`. */
  readonly most?: number;
  readonly monotonic: () => number;
  /** An end user has no limits apart, because its account has too many others. */
  readonly onOverflow: () => void;
}

/**
 * The limits of each end user of a key. Names are a caller's: beyond a number of live ones an account's
 * further end users share one limit, so that a flood of names fills no memory.
 */
export class EndUserScopes {
  readonly #options: EndUserScopesOptions;
  readonly #accounts: AgingMap<AgingMap<true>>;

  constructor(options: EndUserScopesOptions) {
    this.#options = options;
    this.#accounts = new AgingMap(lifetimeMs, options.monotonic());
  }

  /** `endUser` is no name, but a digest. Undefined: the plan of the key limits no end users. */
  of(
    call: Pick<Call, "caller" | "snapshot">,
    endUser: string | undefined,
  ): readonly LimitScope[] | undefined {
    const { key } = call.caller;
    const limits = call.snapshot.plans.get(key.plan)?.eachEndUser;
    if (limits === undefined || endUser === undefined) return undefined;
    const own = endUserScopeId(key.limitScope, endUser);
    const isApart = this.#isApart(key.accountId, own);
    return ownScopes(isApart ? own : endUserScopeId("others", key.accountId), call, limits);
  }

  #isApart(accountId: string, id: string): boolean {
    const { most = mostEndUsers, monotonic, onOverflow } = this.#options;
    const now = monotonic();
    this.#accounts.advance(now);
    let live = this.#accounts.touch(accountId);
    if (live === undefined) {
      live = new AgingMap<true>(lifetimeMs, now);
      this.#accounts.set(accountId, live);
    }
    live.advance(now);
    if (live.touch(id) === true) return true;
    if (live.size < most) {
      live.set(id, true);
      return true;
    }
    onOverflow();
    return false;
  }
}
