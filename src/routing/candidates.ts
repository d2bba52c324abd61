import type { Model, Target } from "../domain/model.ts";
import type { Upstream } from "../snapshot/snapshot.ts";
import {
  describeRank,
  isLoaded,
  type Ranks,
  ranksOf,
  type Session,
  type SessionRank,
  type TargetLoad,
} from "./affinity.ts";
import { describeOut, type TargetView } from "./target-view.ts";

export interface Destination {
  readonly model: Model;
  readonly target: Target;
  readonly upstream: Upstream;
}

/** A destination as one call may try it. */
export interface Candidate extends Destination {
  /** Why it has this position, for operators. */
  readonly why: string;
  /** It is not out; otherwise it serves because no better target is left. */
  readonly isReady: boolean;
  /** Its provider refuses requests until some time. */
  readonly isRefusing: boolean;
  /** Undefined: the call is of no session, or no other target has the priority. */
  readonly rank?: SessionRank | undefined;
}

export interface FoundTarget extends Destination {
  readonly view: TargetView;
  /** Only it understands the newest thoughts of the conversation: it comes first of its group. */
  readonly continues?: boolean;
}

/** Targets that differ only in priority, weight and health. */
export interface TargetGroup {
  readonly targets: readonly FoundTarget[];
  /** Whether they belong to a fallback of the model that the caller named. */
  readonly isFallback: boolean;
}

interface OrderServices {
  /** Returns numbers in [0, 1). */
  readonly random: () => number;
  readonly health: TargetLoad;
}

/**
 * Lists the targets in the order to try them: by group, then those that continue the conversation,
 * then by priority, then by the ranks that they have for the session, or in a random order by weight.
 * Targets that are out come last, those due first in front.
 */
export function listCandidates(
  groups: readonly TargetGroup[],
  { random, health }: OrderServices,
  session?: Session,
): readonly Candidate[] {
  const ready: Candidate[] = [];
  const out: { readonly candidate: Candidate; readonly dueInMs: number }[] = [];
  for (const { targets, isFallback } of groups) {
    const ranks = session && ranksOf(targets, session, health);
    const prefix = isFallback ? "fallback; " : "";
    for (const { found, rank } of inOrder(targets, ranks, random)) {
      const why = found.continues === true ? "wrote its thoughts; " : "";
      ready.push(candidateOf(found, rank, prefix + why + whyHere(found.target, targets)));
    }
    for (const [index, found] of targets.entries()) {
      const { view } = found;
      if (!view.isOut) continue;
      const why = `${prefix}last resort; ${describeOut(view)}`;
      out.push({ candidate: candidateOf(found, ranks?.[index], why), dueInMs: view.outForMs });
    }
  }
  if (out.length === 0) return ready;
  out.sort((one, other) => one.dueInMs - other.dueInMs);
  return [...ready, ...out.map(({ candidate }) => candidate)];
}

function candidateOf(
  { model, target, upstream, view }: FoundTarget,
  rank: SessionRank | undefined,
  place: string,
): Candidate {
  const why = rank === undefined ? place : `${place}; ${describeRank(rank)}`;
  return { model, target, upstream, why, isReady: !view.isOut, isRefusing: view.isRefusing, rank };
}

interface PlacedTarget {
  readonly found: FoundTarget;
  readonly rank: SessionRank | undefined;
  /** Ascending. */
  readonly key: number;
}

/** Those in service. */
function inOrder(
  targets: readonly FoundTarget[],
  ranks: Ranks | undefined,
  random: () => number,
): readonly PlacedTarget[] {
  const placed: PlacedTarget[] = [];
  for (let index = 0; index < targets.length; index += 1) {
    const found = targets[index];
    if (found === undefined || found.view.isOut) continue;
    const rank = ranks?.[index];
    placed.push({ found, rank, key: rank?.draw ?? drawKey(found.target.weight, random) });
  }
  return placed.sort(
    (one, other) =>
      Number(other.found.continues === true) - Number(one.found.continues === true) ||
      one.found.target.priority - other.found.target.priority ||
      Number(isLoaded(one.rank)) - Number(isLoaded(other.rank)) ||
      one.key - other.key,
  );
}

/**
 * Sorting by exponential random keys with the weight as rate is exactly a weighted draw without
 * replacement.
 */
function drawKey(weight: number, random: () => number): number {
  return -Math.log(1 - random()) / weight;
}

function whyHere({ priority, weight }: Target, among: readonly FoundTarget[]): string {
  let total = 0;
  for (const { target, view } of among) {
    if (target.priority === priority && !view.isOut) total += target.weight;
  }
  const byPriority = `priority ${priority}`;
  return total === weight ? byPriority : `${byPriority}, weight ${weight} of ${total}`;
}
