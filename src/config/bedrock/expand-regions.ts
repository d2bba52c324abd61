import { placedNames, placesOf, type PlacedName } from "./bedrock-places.ts";
import type { ConfigFile } from "../schema/schema.ts";

type UpstreamFile = ConfigFile["upstreams"][string];
type BedrockFile = Extract<UpstreamFile, { kind: "bedrock" }>;
type ModelFile = ConfigFile["models"][string];
type TargetFile = ModelFile["targets"][number];

/** An upstream that is in one place. */
export type PlacedUpstream = Exclude<UpstreamFile, BedrockFile> | PlacedBedrock;
export type PlacedBedrock = BedrockFile & { readonly region: string };

/** A target in one place; `baseModel` is its model as the operator wrote it. */
export type PlacedTarget<Target = TargetFile> = Target & { readonly baseModel: string };
export type PlacedModel = PlacedOf<Extract<ModelFile, { kind: "chat" }>> | PlacedOf<EmbeddingFile>;
type EmbeddingFile = Extract<ModelFile, { kind: "embedding" }>;
type PlacedOf<File extends ModelFile> = Omit<File, "targets"> & {
  readonly targets: readonly PlacedTarget<File["targets"][number]>[];
};

/** The file as if every region of an upstream were an upstream of its own. */
export interface PlacedFile {
  readonly upstreams: Readonly<Record<string, PlacedUpstream>>;
  readonly models: PlacedModels;
}
export type PlacedModels = Readonly<Record<string, PlacedModel>>;

/**
 * Makes an upstream in several regions an upstream for each, and its targets a target for each, so
 * that all that is known of upstreams and targets (health, ejection, places, retry budgets, metrics)
 * holds for regions. Regions lie between their target's priority and the next: 1, 1.01, 1.02.
 */
export function expandRegions({ upstreams, models }: ConfigFile): PlacedFile {
  const placed = Object.entries(upstreams).flatMap(([name, upstream]) => place(name, upstream));
  const expanded = Object.entries(models).map(([alias, model]): readonly [string, PlacedModel] => [
    alias,
    expandModel(model, upstreams),
  ]);
  return { upstreams: Object.fromEntries(placed), models: Object.fromEntries(expanded) };
}

function expandModel(model: ModelFile, upstreams: ConfigFile["upstreams"]): PlacedModel {
  switch (model.kind) {
    case "chat":
      return { ...model, targets: expandTargets(model.targets, upstreams) };
    case "embedding":
      return { ...model, targets: expandTargets(model.targets, upstreams) };
  }
}

function place(
  name: string,
  upstream: UpstreamFile,
): readonly (readonly [string, PlacedUpstream])[] {
  switch (upstream.kind) {
    case "openai":
      return [[name, upstream]];
    case "bedrock":
      return placedNames(name, upstream).flatMap(({ name: own, region }) => {
        if (region === undefined) return [];
        const endpoint = upstream.endpoints[region] ?? upstream.endpoint;
        return [[own, { ...upstream, region, endpoint }] as const];
      });
  }
}

function expandTargets<Target extends TargetFile>(
  targets: readonly Target[],
  upstreams: ConfigFile["upstreams"],
): PlacedTarget<Target>[] {
  return targets.flatMap((target) => {
    const upstream = upstreams[target.upstream];
    switch (upstream?.kind) {
      case "bedrock":
        return expandTarget(target, placedNames(target.upstream, upstream));
      case "openai":
      case undefined:
        return [{ ...target, baseModel: target.model }];
    }
  });
}

function expandTarget<Target extends TargetFile>(
  target: Target,
  names: readonly PlacedName[],
): PlacedTarget<Target>[] {
  const { model: baseModel, bedrock } = target;
  const { identifiers = {}, profiles = {} } = bedrock ?? {};
  return placesOf({ model: baseModel, identifiers, profiles }, names).map((each) => ({
    ...target,
    baseModel,
    upstream: each.upstream,
    model: each.model,
    priority: priorityOf(target.priority, each.turn),
    ...(bedrock && { bedrock: { ...bedrock, profiles: listed(each.profiles) } }),
  }));
}

function listed(profiles: Readonly<Record<string, string>>): Record<string, string[]> {
  return Object.fromEntries(Object.entries(profiles).map(([name, arn]) => [name, [arn]]));
}

/** In hundredths, as the sum of fractions would not be. */
function priorityOf(priority: number, turn: number): number {
  return (priority * 100 + turn) / 100;
}
