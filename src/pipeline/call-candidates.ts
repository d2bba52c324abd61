import type { Model } from "../domain/model.ts";
import { GatewayError } from "../domain/gateway-error.ts";
import type { Admission } from "./admit.ts";
import type { Call } from "./call.ts";
import type { Operation } from "./operation.ts";
import { mayUseModel } from "./resolve-model.ts";
import { listCandidates, type Candidate } from "./routing/candidates.ts";
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
function targetsFor(model: Model, { call, admission, services }: CandidateSearch) {
  const { snapshot } = call;
  const listed = listCandidates(model, { snapshot, ...services });
  if (model.targets.every(({ pool }) => pool === undefined)) return listed;
  const { provisionedPool } = call.caller.key;
  const isOwn = ({ target }: Candidate): boolean => target.pool === provisionedPool;
  const isOpen = ({ target }: Candidate): boolean =>
    target.pool === undefined || snapshot.pools.get(target.pool)?.kind !== "dedicated";
  if (admission.capacityClass !== "provisioned") return listed.filter(isOpen);
  const own = listed.filter(isOwn);
  if (call.options.capacity === "provisioned-only") return own;
  return [...own, ...listed.filter((candidate) => !isOwn(candidate) && isOpen(candidate))];
}
