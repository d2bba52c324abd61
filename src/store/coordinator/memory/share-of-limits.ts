import type { LimitScope } from "../../../domain/limits/limit-scope.ts";
import type { LimitState } from "../../../domain/limits/limit-state.ts";
import type { LimitRequest, RefusedByLimit } from "../../store.ts";

/** What was asked of a process that decides by itself, within its share of the limits. */
export type AskedOfShare = Pick<LimitRequest, "scopes" | "tokens" | "mostTokens">;

/** The wait sent for a request that is too large only for the share: all is decided by then. */
const wholeBackMs = 2_000;

/** The refusal by a share of the limits, with the figures of the whole limits. */
export function refusedByShare(refusal: RefusedByLimit, asked: AskedOfShare): RefusedByLimit {
  const state = stateOfWhole(refusal.state, asked.scopes, refusal.scopeId);
  const { limitRequests, limitTokens } = refusal.state;
  const share = refusal.dimension === "tokens" ? limitTokens : limitRequests;
  if (refusal.retryAfterMs !== undefined || !fitsWhole(asked)) return { ...refusal, state, share };
  const freeAfterMs = refusal.overrun === undefined ? wholeBackMs : undefined;
  return { ...refusal, state, share, freeAfterMs, retryAfterMs: wholeBackMs };
}

/** Callers see the limits of their plan, and what is left of the share. */
export function stateOfWhole(
  state: LimitState,
  scopes: readonly LimitScope[],
  id: string | undefined,
): LimitState {
  const limitOf = (unit: LimitScope["unit"]): number =>
    scopes.find((scope) => scope.id === id && scope.unit === unit)?.limit ?? Infinity;
  return { ...state, limitRequests: limitOf("requests"), limitTokens: limitOf("tokens") };
}

/** Whether a request fits an empty window of the whole limits. */
function fitsWhole({ scopes, tokens, mostTokens = tokens }: AskedOfShare): boolean {
  return scopes.every(({ unit, limit, overrunFactor = Infinity }) =>
    unit === "requests"
      ? limit >= 1
      : limit >= tokens && mostTokens - tokens <= limit * overrunFactor,
  );
}
