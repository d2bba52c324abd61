import type { LimitScope, LimitUnit } from "./limit-scope.ts";
import type { WindowUse } from "./window.ts";

/** What the window of a scope holds, or a part of it, for another process. */
export interface ScopeUse extends WindowUse {
  readonly scope: NamedScope;
}

/** What tells a scope from others. Caps and guarantees of one id count separately. */
export interface NamedScope {
  readonly id: string;
  readonly unit: LimitUnit;
  /** Of a guarantee; 0: a minute. */
  readonly seconds: number;
}

export function nameOf({
  id,
  unit,
  window,
}: Pick<LimitScope, "id" | "unit" | "window">): NamedScope {
  return { id, unit, seconds: window === "minute" ? 0 : window.seconds };
}
