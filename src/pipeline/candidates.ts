import type { Model, Target } from "../domain/model.ts";
import type { Snapshot, Upstream } from "./snapshot.ts";

/** A target together with the upstream that serves it. */
export interface Candidate {
  readonly model: Model;
  readonly target: Target;
  readonly upstream: Upstream;
}

/**
 * The targets of a model in the order to try them: by priority, and within one priority drawn by
 * weight without replacement. `random` gives numbers in [0, 1).
 */
export function listCandidates(
  model: Model,
  snapshot: Snapshot,
  random: () => number,
): readonly Candidate[] {
  const [only] = model.targets;
  const ordered =
    model.targets.length === 1 && only !== undefined ? [only] : order(model.targets, random);
  const candidates: Candidate[] = [];
  for (const target of ordered) {
    const upstream = snapshot.upstreams.get(target.upstream);
    if (upstream !== undefined) candidates.push({ model, target, upstream });
  }
  return candidates;
}

/** Exponential sort keys with the weight as rate give exactly a weighted draw without replacement. */
function order(targets: readonly Target[], random: () => number): readonly Target[] {
  return targets
    .map((target) => ({ target, key: -Math.log(1 - random()) / target.weight }))
    .toSorted((one, other) => one.target.priority - other.target.priority || one.key - other.key)
    .map(({ target }) => target);
}

/**
 * How many requests of one call the target may get at once: never more than its upstream has
 * places for, so that the parts of a call do not refuse each other.
 */
export function placesAt({ upstream }: Candidate): number {
  return Math.max(1, upstream.inFlight.free);
}
