import type { CallDialect } from "../../domain/usage/usage.ts";
import type { CandidateNote } from "../../domain/usage/call-routing.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Model, ModelKind, Target } from "../../domain/model.ts";
import type { Admission } from "../../admission/admit.ts";
import { mayUseModel } from "../../domain/keys/key.ts";
import type { Call } from "../../snapshot/call.ts";
import type { NamedLabels } from "../labels.ts";
import type { CallServices } from "../services.ts";
import type { Session } from "../../routing/affinity.ts";
import {
  type Candidate,
  type Destination,
  type FoundTarget,
  listCandidates,
  type TargetGroup,
} from "../../routing/candidates.ts";
import { missingAt, type PricedWork } from "../../admission/reserve-money.ts";
import type { InputSize, OutputExpectation } from "../../admission/estimate/estimate.ts";
import type { Attempt, AttemptContext } from "./attempt.ts";

interface CandidateSearch {
  readonly call: Call;
  readonly admission: Admission;
  readonly work: Pick<CallWork<unknown>, "check" | "isTagged" | "continues" | "session">;
  readonly services: Pick<
    CallServices,
    "sessions" | "prices" | "health" | "prober" | "random" | "tags"
  >;
}

interface ModelSearch extends Pick<CandidateSearch, "call"> {
  readonly work: Pick<CallWork<unknown>, "check">;
}

interface FoundCandidates {
  /** Best candidate first. */
  readonly candidates: readonly Candidate[];
  /** Models and targets that may not serve this call, with the reasons. */
  readonly leftOut: readonly CandidateNote[];
  readonly groups: readonly TargetGroup[];
}

/**
 * All targets that may serve a call, best first: those of its model, then of its fallbacks, then
 * those that are out.
 */
export function candidatesOf(search: CandidateSearch): FoundCandidates {
  const { call, admission, work, services } = search;
  const { model } = admission;
  const leftOut: CandidateNote[] = [];
  const groups: TargetGroup[] = [];
  const tooSmall = whyTooSmall(model, work);
  if (tooSmall === undefined) groups.push(...groupsOf(model, false, search));
  else leftOut.push({ target: "-", model: model.alias, why: tooSmall });
  for (const alias of model.fallbacks ?? []) {
    const fallback = call.environment.models.get(alias);
    const why = whyNoFallback(fallback, { call, work });
    if (fallback === undefined || why !== undefined) {
      leftOut.push({ target: "-", model: alias, why: `fallback left out; ${why}` });
    } else groups.push(...groupsOf(fallback, true, search));
  }
  const priced = admission.budgeted === undefined ? groups : pricedOf(groups, leftOut, search);
  const hasSession = call.snapshot.routing.hasSessionAffinity && priced.some(hasPeers);
  const session = hasSession ? work.session?.(model, call, services) : undefined;
  const candidates = listCandidates(priced, services, session);
  // No fallback may take this call, so the input is too long.
  if (candidates.length === 0 && tooSmall !== undefined) work.check(model);
  return { candidates, leftOut, groups: priced };
}

/**
 * Throws 400 for a request that the model cannot take, unless it is only too long and a fallback
 * has a larger context window.
 */
export function checkModels(model: Model, { call, work }: ModelSearch): void {
  if (whyTooSmall(model, work) === undefined) return;
  const canServe = model.fallbacks?.some((alias) => {
    const fallback = call.environment.models.get(alias);
    return whyNoFallback(fallback, { call, work }) === undefined;
  });
  if (canServe !== true) work.check(model);
}

/** Why the request is too long for the model, if it is. Throws any other refusal. */
function whyTooSmall(model: Model, work: Pick<CallWork<unknown>, "check">): string | undefined {
  try {
    work.check(model);
    return undefined;
  } catch (error) {
    const isTooLong = error instanceof GatewayError && error.code === "context_length_exceeded";
    if (!isTooLong) throw error;
    return `the input exceeds its context window of ${model.contextWindow} tokens`;
  }
}

/** Why a fallback may not serve the call, if so. */
function whyNoFallback(model: Model | undefined, { call, work }: ModelSearch): string | undefined {
  if (model === undefined) return "the environment does not have it";
  if (!mayUseModel(call.caller.key, model.alias)) return "the key may not use it";
  try {
    work.check(model);
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return `it does not accept the request: ${error.code}`;
    throw error;
  }
}

/** Provisioned calls go to the pool of their units first, then to any other target. */
function groupsOf(
  model: Model,
  isFallback: boolean,
  search: CandidateSearch,
): readonly TargetGroup[] {
  const found = findTargets(model, search);
  if (search.admission.capacityClass !== "provisioned") return [{ targets: found, isFallback }];
  const { provisionedPool } = search.call.caller.key;
  const isOwn = ({ target }: FoundTarget): boolean => target.pool === provisionedPool;
  return [
    { targets: found.filter(isOwn), isFallback },
    { targets: found.filter((each) => !isOwn(each)), isFallback },
  ];
}

function findTargets(model: Model, search: CandidateSearch): readonly FoundTarget[] {
  const { call, work, services } = search;
  const found: FoundTarget[] = [];
  for (const target of model.targets) {
    const upstream = call.snapshot.upstreams.get(target.upstream);
    if (upstream === undefined || !mayUseTarget(target, search)) continue;
    const view = services.health.view(target.id, call.caller.key.id);
    found.push({ model, target, upstream, view });
  }
  // There is no choice to make otherwise.
  if (found.length < 2 || work.isTagged !== true) return found;
  return found.map((each) => {
    const continues = work.continues?.(each, call, services) === true;
    return continues ? { ...each, continues } : each;
  });
}

/** Whether two of the targets have the same priority. */
function hasPeers({ targets }: TargetGroup): boolean {
  for (let index = 1; index < targets.length; index += 1) {
    const priority = targets[index]?.target.priority;
    for (let before = 0; before < index; before += 1) {
      if (targets[before]?.target.priority === priority) return true;
    }
  }
  return false;
}

function mayUseTarget({ pool }: Target, { call, admission }: CandidateSearch): boolean {
  if (pool === undefined && admission.capacityClass !== "provisioned") return true;
  const isProvisioned = admission.capacityClass === "provisioned";
  if (isProvisioned && pool === call.caller.key.provisionedPool) return true;
  if (isProvisioned && call.options.capacity === "provisioned-only") return false;
  return pool === undefined || call.snapshot.pools.get(pool)?.kind !== "dedicated";
}

/** Without targets whose price is not known or not reserved. A pool of the key's units is paid by them. */
function pricedOf(
  groups: readonly TargetGroup[],
  leftOut: CandidateNote[],
  { call, admission, services }: CandidateSearch,
): readonly TargetGroup[] {
  const { budgeted, capacityClass } = admission;
  const isKnown = ({ target, model }: FoundTarget): boolean => {
    const isOwn = target.pool === call.caller.key.provisionedPool;
    if (budgeted === undefined || (isOwn && capacityClass === "provisioned")) return true;
    const missing = missingAt({ target, model }, budgeted.request, services.prices);
    if (missing === undefined && !budgeted.isOfPool) return true;
    const why = missing ? `${missing}, and under a budget` : "a budget has no room for it";
    leftOut.push({ target: target.id, model: model.alias, why });
    return false;
  };
  return groups.map((group) => ({ ...group, targets: group.targets.filter(isKnown) }));
}

/** Probes the targets whose time out is over, if others serve the call meanwhile. */
export function probeDue({ candidates, groups }: FoundCandidates, search: CandidateSearch): void {
  if (candidates[0]?.isReady !== true) return;
  for (const { targets } of groups) {
    for (const found of targets) {
      if (found.view.needsProbe) search.services.prober.probe(found, search.call.snapshot);
    }
  }
}

/** Targets that may serve a call of the model: its own and those of its fallbacks. */
export function possibleTargets(
  model: Model,
  { environment }: Pick<Call, "environment">,
): readonly PossibleTarget[] {
  const fallbacks = model.fallbacks?.map((alias) => environment.models.get(alias)) ?? [];
  return [model, ...fallbacks].flatMap((each) => {
    if (each === undefined) return [];
    return each.targets.map((target) => ({ alias: each.alias, target }));
  });
}

interface PossibleTarget {
  readonly alias: string;
  readonly target: Target;
}

/**
 * A call's request and how it is sent to a target: what differs between chat, streamed chat and
 * embeddings.
 */
export interface CallWork<Answer> extends PricedWork {
  readonly alias: string;
  readonly kind: ModelKind;
  readonly dialect: CallDialect;
  readonly isStreamed: boolean;
  readonly named: NamedLabels;
  /** What admission reserves for, of this model. */
  expectedOutput(model: Model): OutputExpectation;
  /** The part of the call that no attempt has answered yet, from 0 to 1. */
  unanswered(): number;
  /**
   * Upper bound of the input that possible upstreams may read, for all requests of the call
   * together.
   */
  measure(model: Model, call: Pick<Call, "snapshot" | "environment">): InputSize;
  /** Refuses, with 400, a request that this model cannot serve. */
  check(model: Model): void;
  /** The exact number of input tokens, if it can be counted without an answer. */
  countInput?(model: Model, context: CountContext): Promise<number | undefined>;
  /** Whether the conversation has parts that only who wrote them understands. */
  readonly isTagged?: boolean;
  /** Whether the destination wrote the newest part of the conversation that only it understands. */
  continues?(destination: Destination, call: Call, services: Pick<CallServices, "tags">): boolean;
  /** Whose calls the targets of one priority are ranked for. Undefined: they are drawn by weight. */
  session?(model: Model, call: Call, services: Pick<CallServices, "sessions">): Session | undefined;
  /** Resolves once the answer, or its first event, is decoded. */
  attempt(attempt: Attempt): Promise<Answer>;
}

/** What counting the input of a call needs; it is no attempt. */
export type CountContext = Pick<AttemptContext, "call" | "meter" | "services">;
