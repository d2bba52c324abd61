import type { CandidateNote } from "../domain/call-routing.ts";
import type { Model, Target } from "../domain/model.ts";
import { GatewayError } from "../domain/gateway-error.ts";
import type { Admission } from "./admit.ts";
import type { Call } from "./call.ts";
import type { Operation } from "./operation.ts";
import { mayUseModel } from "./resolve-model.ts";
import { listCandidates, listEjected, type Candidate } from "./routing/candidates.ts";
import type { PipelineServices } from "./services.ts";

export interface CandidateSearch {
  readonly call: Call;
  readonly admission: Admission;
  readonly operation: Pick<Operation<unknown>, "check">;
  readonly services: Pick<PipelineServices, "health" | "random">;
}

/** All targets that may serve a call, best first: those of its model, then those of its fallbacks. */
export function candidatesOf(search: CandidateSearch): readonly Candidate[] {
  const { model } = search.admission;
  const own = targetsFor(model, search);
  if (model.fallbacks === undefined || model.fallbacks.length === 0) return own;
  const fallbacks = model.fallbacks.flatMap((alias) => {
    const fallback = search.call.environment.models.get(alias);
    return fallback !== undefined && mayStandIn(fallback, search)
      ? targetsFor(fallback, search)
      : [];
  });
  return [...own, ...fallbacks.map((each) => ({ ...each, why: `fallback; ${each.why}` }))];
}

/** A fallback is for callers that may use it, and for requests that it takes. */
function mayStandIn(model: Model, { call, operation }: CandidateSearch): boolean {
  if (!mayUseModel(call.caller.key, model.alias)) return false;
  try {
    operation.check(model);
    return true;
  } catch (error) {
    if (error instanceof GatewayError) return false;
    throw error;
  }
}

/** Provisioned calls go where their units are first, and then wherever anybody may. */
function targetsFor(model: Model, search: CandidateSearch): readonly Candidate[] {
  const context = { snapshot: search.call.snapshot, ...search.services };
  if (model.targets.every(({ pool }) => pool === undefined)) return listCandidates(model, context);
  const { isOwn, mayUse } = rulesFor(search);
  const listed = listCandidates(model, { ...context, mayUse });
  if (search.admission.capacityClass !== "provisioned") return listed;
  const [own, others] = [listed.filter(isOwn), listed.filter((each) => !isOwn(each))];
  return [...own, ...others];
}

/** Targets that were left out because they keep failing, for those who ask why. */
export function ejectedOf(
  search: CandidateSearch,
  candidates: readonly Candidate[],
): readonly CandidateNote[] {
  const { call, admission, services } = search;
  const own = candidates.filter(({ model }) => model === admission.model);
  // Most often none is missing.
  if (own.length === admission.model.targets.length) return [];
  const { mayUse } = rulesFor(search);
  return listEjected(admission.model, { snapshot: call.snapshot, ...services, mayUse });
}

interface TargetRules {
  readonly isOwn: (candidate: Pick<Candidate, "target">) => boolean;
  readonly mayUse: (target: Target) => boolean;
}

function rulesFor({ call, admission }: CandidateSearch): TargetRules {
  const { pools } = call.snapshot;
  const { provisionedPool } = call.caller.key;
  const isProvisioned = admission.capacityClass === "provisioned";
  const isOwn = (target: Target): boolean => isProvisioned && target.pool === provisionedPool;
  const isOpen = ({ pool }: Target): boolean =>
    pool === undefined || pools.get(pool)?.kind !== "dedicated";
  const isStrict = isProvisioned && call.options.capacity === "provisioned-only";
  return {
    isOwn: ({ target }) => isOwn(target),
    mayUse: (target) => isOwn(target) || (!isStrict && isOpen(target)),
  };
}
