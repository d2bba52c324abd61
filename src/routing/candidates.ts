import type { Model, Target } from "../domain/model.ts";
import type { Upstream } from "../snapshot/snapshot.ts";
import type { TargetView } from "./target-view.ts";

/** A target together with the upstream that serves it. */
export interface Destination {
  readonly model: Model;
  readonly target: Target;
  readonly upstream: Upstream;
}

/** A destination as one call may try it. */
export interface Candidate extends Destination {
  /** Why it has this position, for operators. */
  readonly why: string;
  /** Neither ejected nor paused. */
  readonly isReady: boolean;
  readonly isPaused: boolean;
  /** No better target is left: it serves even if it is ejected, paused or in slow start. */
  readonly hasToServe: boolean;
  /** Identifies its turn in a call; a target in slow start has two. */
  readonly turn: string;
}

/** A target that may serve a call, with its health. */
export interface FoundTarget extends Destination {
  readonly view: TargetView;
}

/** Targets that differ only in priority, weight and health. */
export interface TargetGroup {
  readonly targets: readonly FoundTarget[];
  /** Whether they belong to a fallback of the model that the caller named. */
  readonly isFallback: boolean;
}

/**
 * Lists the targets in the order to try them: by group, then by priority, then in a random order by
 * weight, in which the first two swap if the second is clearly better. Ejected and paused targets
 * come last, those due first in front. `random` returns numbers in [0, 1).
 */
export function listCandidates(
  groups: readonly TargetGroup[],
  random: () => number,
): readonly Candidate[] {
  const only = onlyCandidate(groups);
  if (only !== undefined) return [only];
  const ready = groups.flatMap(({ targets, isFallback }) =>
    inOrder(
      targets.filter(({ view }) => isReady(view)),
      random,
    ).map(({ found, why }) => ({
      ...candidateOf(found, isFallback ? `fallback; ${why}` : why),
      isReady: true,
      hasToServe: false,
      isStartingSlowly: found.view.isStartingSlowly,
    })),
  );
  // If no other target has room, one in slow start gets more than its share.
  const overflow = ready
    .filter(({ isStartingSlowly }) => isStartingSlowly)
    .map((candidate) => ({
      ...candidate,
      why: `${candidate.why}; starts slowly`,
      hasToServe: true,
      turn: `${candidate.turn} again`,
    }));
  return [...ready, ...overflow, ...lastResorts(groups)];
}

/** The usual case, for which no lists are built: one target, fully in service. */
function onlyCandidate([group, other]: readonly TargetGroup[]): Candidate | undefined {
  const found = group?.targets[0];
  if (found === undefined || other !== undefined || group?.targets.length !== 1) return undefined;
  if (!isReady(found.view) || found.view.isStartingSlowly) return undefined;
  const why = `priority ${found.target.priority}`;
  return {
    model: found.model,
    target: found.target,
    upstream: found.upstream,
    why: group.isFallback ? `fallback; ${why}` : why,
    isPaused: false,
    turn: found.target.id,
    isReady: true,
    hasToServe: false,
  };
}

function isReady({ isEjected, pausedForMs }: TargetView): boolean {
  return !isEjected && pausedForMs === 0;
}

function lastResorts(groups: readonly TargetGroup[]): readonly Candidate[] {
  const resorts = groups.flatMap(({ targets, isFallback }) =>
    targets
      .filter(({ view }) => !isReady(view))
      .map((found) => ({ found, isFallback, dueInMs: dueInMs(found.view) })),
  );
  resorts.sort((one, other) => one.dueInMs - other.dueInMs);
  return resorts.map(({ found, isFallback }) => {
    const why = `last resort; ${whyNotReady(found.view)}`;
    return {
      ...candidateOf(found, isFallback ? `fallback; ${why}` : why),
      isReady: false,
      hasToServe: true,
    };
  });
}

function dueInMs({ ejectedForMs, pausedForMs }: TargetView): number {
  return Math.max(ejectedForMs, pausedForMs);
}

function whyNotReady({ isEjected, ejectedForMs, because, pausedForMs }: TargetView): string {
  const howLong = ejectedForMs === 0 ? "until it answers" : `for ${inSeconds(ejectedForMs)}`;
  const whys = [
    ...(isEjected ? [`ejected ${howLong}: ${because}`] : []),
    ...(pausedForMs > 0 ? [`paused for ${inSeconds(pausedForMs)}, as the provider asked`] : []),
  ];
  return whys.join("; ");
}

interface RankedTarget {
  readonly found: FoundTarget;
  readonly why: string;
}

function inOrder(targets: readonly FoundTarget[], random: () => number): readonly RankedTarget[] {
  const [only, second] = targets;
  if (only === undefined) return [];
  if (second === undefined) return ranked(targets);
  const keyed = targets.map((found) => ({ found, key: drawKey(found.target.weight, random) }));
  keyed.sort(
    (one, other) => one.found.target.priority - other.found.target.priority || one.key - other.key,
  );
  return byPriority(keyed.map(({ found }) => found)).flatMap(ranked);
}

/**
 * Sorting by exponential random keys with the weight as rate is exactly a weighted draw without
 * replacement.
 */
function drawKey(weight: number, random: () => number): number {
  return -Math.log(1 - random()) / weight;
}

function byPriority(sorted: readonly FoundTarget[]): readonly (readonly FoundTarget[])[] {
  const groups: FoundTarget[][] = [];
  let last: number | undefined;
  for (const found of sorted) {
    if (found.target.priority === last) groups.at(-1)?.push(found);
    else groups.push([found]);
    last = found.target.priority;
  }
  return groups;
}

function ranked(drawn: readonly FoundTarget[]): readonly RankedTarget[] {
  const [first, second, ...rest] = drawn;
  if (first === undefined) return [];
  const { priority } = first.target;
  if (second === undefined) return [{ found: first, why: `priority ${priority}` }];
  const total = drawn.reduce((sum, { target }) => sum + target.weight, 0);
  const byWeight = (found: FoundTarget): RankedTarget => ({
    found,
    why: `priority ${priority}, weight ${found.target.weight} of ${total}`,
  });
  const worse = clearlyWorse(first.view, second.view);
  const leading =
    worse === undefined
      ? [byWeight(first), byWeight(second)]
      : [byWeight(second), { found: first, why: `priority ${priority}; ${worse}` }];
  return [...leading, ...rest.map(byWeight)];
}

function candidateOf({ model, target, upstream, view }: FoundTarget, why: string) {
  return { model, target, upstream, why, isPaused: view.pausedForMs > 0, turn: target.id };
}

function inSeconds(durationMs: number): string {
  return `${Math.ceil(durationMs / 1_000)} s`;
}

/** Smaller differences are chance, and do not override the weights. */
const clearShare = 0.25;
const clearFactor = 2;
/** Smaller delays go unnoticed. */
const clearDelayMs = 50;

/** Why the first target is clearly worse than the other; undefined when the weights decide. */
function clearlyWorse(one: TargetView, other: TargetView): string | undefined {
  if (one.failureShare - other.failureShare > clearShare) return "fails more often";
  // Failures can be fast, which must not make a target look better.
  if (other.failureShare - one.failureShare > clearShare) return undefined;
  if (isFull(one) && !isFull(other)) return "at its limit";
  if (isFull(other)) return undefined;
  return isSlower(one, other) ? "slower" : undefined;
}

function isFull({ inFlight, limit }: TargetView): boolean {
  return inFlight + 1 > limit;
}

function isSlower(one: TargetView, other: TargetView): boolean {
  if (one.firstEventMs === undefined || other.firstEventMs === undefined) return false;
  const isFar = one.firstEventMs - other.firstEventMs > clearDelayMs;
  return isFar && one.firstEventMs > other.firstEventMs * clearFactor;
}
