import type { Model, Target } from "../../domain/model.ts";
import type { Call } from "../../snapshot/call.ts";

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

export interface PossibleTarget {
  readonly alias: string;
  readonly target: Target;
}
