import type { CandidateNote } from "../../domain/call-routing.ts";
import type { Model, Target } from "../../domain/model.ts";
import type { Snapshot, Upstream } from "../snapshot.ts";
import { clearlyWorse } from "./compare-targets.ts";
import type { TargetHealth, TargetView } from "./target-health.ts";

/** A target together with the upstream that serves it. */
export interface Candidate {
  readonly model: Model;
  readonly target: Target;
  readonly upstream: Upstream;
  /** Why it stands where it stands, for operators. */
  readonly why: string;
  /** It keeps failing, but too few other targets are left to leave it alone. */
  readonly hasToServe?: boolean;
}

export interface CandidateContext {
  readonly snapshot: Snapshot;
  readonly health: Pick<TargetHealth, "view">;
  /** The targets that the call may go to, all unless said; at least half of these stay. */
  readonly mayUse?: (target: Target) => boolean;
  /** Gives numbers in [0, 1). */
  readonly random: () => number;
}

/**
 * The targets of a model in the order to try them: by priority, and within one priority drawn by
 * weight without replacement, where the first two change places if the second is clearly better.
 * Ejected targets are left out, at most half of all; those whose provider asked for a pause come
 * last.
 */
export function listCandidates(model: Model, context: CandidateContext): readonly Candidate[] {
  const known = knownTargets(model, context);
  const [only] = known;
  if (only === undefined) return [];
  if (known.length === 1) {
    return [toCandidate(model, { ...only, hasToServe: only.view.isEjected }, whyOnly(only))];
  }
  const { stay } = holdBack(known);
  const ready = stay.filter(({ view }) => view.pausedForMs === 0);
  const paused = stay.filter(({ view }) => view.pausedForMs > 0);
  return [
    ...inOrder(ready, context.random).map((place) => toCandidate(model, place.found, whyOf(place))),
    ...inOrder(paused, context.random).map(({ found }) =>
      toCandidate(model, found, `paused for ${inSeconds(found.view.pausedForMs)}`),
    ),
  ];
}

/** The targets that are left out now, for those who ask how a call found its way. */
export function listEjected(
  model: Model,
  context: Omit<CandidateContext, "random">,
): readonly CandidateNote[] {
  return holdBack(knownTargets(model, context)).leftOut.map(({ target, view }) => ({
    target: target.id,
    model: model.alias,
    why: `ejected for ${inSeconds(view.ejectedForMs)}`,
  }));
}

/**
 * How many requests of one call the target may get at once: never more than its upstream has
 * places for, so that the parts of a call do not refuse each other.
 */
export function placesAt({ upstream }: Pick<Candidate, "upstream">): number {
  return Math.max(1, upstream.inFlight.free);
}

interface FoundTarget {
  readonly target: Target;
  readonly upstream: Upstream;
  readonly view: TargetView;
  readonly hasToServe: boolean;
}

function knownTargets(
  model: Model,
  { snapshot, health, mayUse }: Omit<CandidateContext, "random">,
): readonly FoundTarget[] {
  const known: FoundTarget[] = [];
  for (const target of model.targets) {
    const upstream = snapshot.upstreams.get(target.upstream);
    if (upstream === undefined || mayUse?.(target) === false) continue;
    known.push({ target, upstream, view: health.view(target.id), hasToServe: false });
  }
  return known;
}

interface HeldBack {
  readonly stay: readonly FoundTarget[];
  readonly leftOut: readonly FoundTarget[];
}

/**
 * Half of the targets, rounded up, serve whatever happened to them: those that are well, then those
 * whose ejection ends first. Of the others, those whose time is over may be tried by one call.
 */
function holdBack(known: readonly FoundTarget[]): HeldBack {
  const ejected = known.filter(({ view }) => view.isEjected);
  if (ejected.length === 0) return { stay: known, leftOut: [] };
  const surplus = ejected.length - Math.floor(known.length / 2);
  const serving = new Set(
    surplus > 0
      ? ejected
          .toSorted((one, other) => one.view.ejectedForMs - other.view.ejectedForMs)
          .slice(0, surplus)
      : [],
  );
  const stay: FoundTarget[] = [];
  const leftOut: FoundTarget[] = [];
  for (const found of known) {
    if (serving.has(found)) stay.push({ ...found, hasToServe: true });
    else if (found.view.ejectedForMs > 0) leftOut.push(found);
    else stay.push(found);
  }
  return { stay, leftOut };
}

interface Place {
  readonly found: FoundTarget;
  readonly why: string;
}

function inOrder(targets: readonly FoundTarget[], random: () => number): readonly Place[] {
  const keyed = targets.map((found) => ({ found, key: drawKey(found.target.weight, random) }));
  keyed.sort(
    (one, other) => one.found.target.priority - other.found.target.priority || one.key - other.key,
  );
  return byPriority(keyed.map(({ found }) => found)).flatMap(placesOf);
}

/** Exponential sort keys with the weight as rate give exactly a weighted draw without replacement. */
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

function placesOf(drawn: readonly FoundTarget[]): readonly Place[] {
  const [first, second, ...rest] = drawn;
  if (first === undefined) return [];
  const { priority } = first.target;
  if (second === undefined) return [{ found: first, why: `priority ${priority}` }];
  const total = drawn.reduce((sum, { target }) => sum + target.weight, 0);
  const byWeight = (found: FoundTarget): Place => ({
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

function whyOnly({ target, view }: FoundTarget): string {
  if (view.isEjected) return "ejected, but there is no other target";
  if (view.pausedForMs > 0) return `paused for ${inSeconds(view.pausedForMs)}`;
  return `priority ${target.priority}`;
}

function whyOf({ found, why }: Place): string {
  if (found.hasToServe) return "ejected, but half of the targets must stay";
  return found.view.isEjected ? "probe after ejection" : why;
}

function toCandidate(model: Model, found: FoundTarget, why: string): Candidate {
  const { target, upstream } = found;
  return { model, target, upstream, why, hasToServe: found.hasToServe };
}

function inSeconds(durationMs: number): string {
  return `${Math.ceil(durationMs / 1_000)} s`;
}
