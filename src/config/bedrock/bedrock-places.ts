import { fitToRegion, regionOfArn } from "../../upstreams/bedrock/regions/fit-to-region.ts";

/** What is said of where an upstream is: `regions` of one that is in several. */
export interface UpstreamRegions {
  readonly region?: string | undefined;
  readonly regions?: readonly string[] | undefined;
}

/** One upstream in one region, under its own name. */
export interface PlacedName {
  readonly name: string;
  readonly region: string | undefined;
  /** Whether identifiers are fitted to the region. */
  readonly isOneOfSeveral: boolean;
}

/** What a target says of its model. */
export interface PlacedModel {
  readonly model: string;
  /** By region, where it is another than what follows from `model`. */
  readonly identifiers: Readonly<Record<string, string>>;
  /** ARNs by the environment whose calls use them. */
  readonly profiles: Readonly<Record<string, readonly string[]>>;
}

/** A target in one region. */
export interface Place {
  readonly upstream: string;
  readonly region: string | undefined;
  readonly model: string;
  /** The turn of the region among those of its upstream, from 0. */
  readonly turn: number;
  /** The one ARN of each environment that is good in this region. */
  readonly profiles: Readonly<Record<string, string>>;
}

/** An upstream in several regions is one upstream for each, which `@` and the region name. */
export function placedNames(name: string, { region, regions }: UpstreamRegions): PlacedName[] {
  if (regions === undefined) return [{ name, region, isOneOfSeveral: false }];
  return regions.map((each) => ({ name: `${name}@${each}`, region: each, isOneOfSeveral: true }));
}

/** Where a target serves: in every region of its upstream that knows the model. */
export function placesOf(target: PlacedModel, upstreams: readonly PlacedName[]): readonly Place[] {
  return upstreams.flatMap(({ name, region, isOneOfSeveral }, turn) => {
    const model = isOneOfSeveral ? modelIn(region, target) : target.model;
    if (model === undefined) return [];
    return [{ upstream: name, region, model, turn, profiles: profilesIn(region, target) }];
  });
}

/** `<upstream>/<identifier>` of all that a target may be called as, in whatever environment. */
export function targetIdsOf(places: readonly Place[]): readonly string[] {
  return places.flatMap(({ upstream, model, profiles }) =>
    [model, ...new Set(Object.values(profiles))].map((each) => `${upstream}/${each}`),
  );
}

function modelIn(region: string | undefined, target: PlacedModel): string | undefined {
  if (region === undefined) return target.model;
  return target.identifiers[region] ?? fitToRegion(target.model, region);
}

function profilesIn(region: string | undefined, { profiles }: PlacedModel): Place["profiles"] {
  const found = Object.entries(profiles).flatMap(([environment, arns]) => {
    const arn = arns.find((each) => regionOfArn(each) === region);
    return arn === undefined ? [] : [[environment, arn] as const];
  });
  return Object.fromEntries(found);
}
