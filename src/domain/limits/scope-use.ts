import type { LimitScope, LimitUnit } from "./limit-scope.ts";
import type { WindowUse } from "./window.ts";

/** The use in the window of a scope, or a part of it, as reported to another process. */
export interface ScopeUse extends WindowUse {
  readonly scope: NamedScope;
}

/** What identifies a scope. Caps and guarantees of one id count separately. */
export interface NamedScope {
  readonly id: string;
  readonly unit: LimitUnit;
  /** The period of a guarantee; 0: a minute. */
  readonly seconds: number;
}

export function nameOf({
  id,
  unit,
  window,
}: Pick<LimitScope, "id" | "unit" | "window">): NamedScope {
  return { id, unit, seconds: window === "minute" ? 0 : window.seconds };
}
