import type { LimitScope, LimitWindow } from "../../src/domain/limits/limit-scope.ts";

/** The limits of one id in one kind of window. */
export interface LimitsOfId {
  readonly id: string;
  readonly window: LimitWindow;
  /** For the whole window. */
  readonly requests: number;
  readonly tokens: number;
  readonly overrunFactor: number;
  readonly isShared: boolean;
  readonly isAudited: boolean;
}

/** In the order of their ids. */
export function limitsById(scopes: readonly LimitScope[]): readonly LimitsOfId[] {
  const byName = new Map<string, LimitsOfId>();
  for (const { id, window, unit, limit, overrunFactor = Infinity, ...sort } of scopes) {
    const { isShared = false, isAudited = false } = sort;
    const name = `${id} ${window === "minute"}`;
    const so = byName.get(name);
    byName.set(name, {
      id,
      window,
      requests: unit === "requests" ? limit : (so?.requests ?? Infinity),
      tokens: unit === "tokens" ? limit : (so?.tokens ?? Infinity),
      isShared,
      isAudited,
      overrunFactor: unit === "tokens" ? overrunFactor : (so?.overrunFactor ?? Infinity),
    });
  }
  return [...byName.values()];
}
