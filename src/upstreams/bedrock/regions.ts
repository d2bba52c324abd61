import facts from "./models/facts.json" with { type: "json" };
import { foundationModelOf, knownRegions } from "./models/facts.ts";
import { suggest } from "../../domain/suggest.ts";

/**
 * The identifier of a model in a region; undefined if the region does not have it. The prefix of a
 * system profile becomes that of the region's geography. A profile that is already valid there, a
 * foundation model and a `global.` profile stay unchanged. An ARN is valid only in its own region.
 */
export function fitToRegion(identifier: string, region: string): string | undefined {
  const foundationModel = foundationModelOf(identifier);
  if (foundationModel === undefined) {
    return (regionOfArn(identifier) ?? region) === region ? identifier : undefined;
  }
  if (foundationModel === identifier) return identifier;
  const written = identifier.slice(0, -foundationModel.length - 1);
  const own = geographies.filter(([, regions]) => regions.test(region)).map(([name]) => name);
  if (written === "global" || own.includes(written)) return identifier;
  const fitting = own.find(
    (name) => !nationalInAsia.has(name) || hasNationalProfiles.test(foundationModel),
  );
  return fitting === undefined ? undefined : `${fitting}.${foundationModel}`;
}

/** Undefined for anything but an ARN, and for ARNs without a region. */
export function regionOfArn(identifier: string): string | undefined {
  const [, region] = /^arn:[^:]*:[^:]*:([^:]+):/.exec(identifier) ?? [];
  return region;
}

/**
 * Regions that profiles of a prefix are called from; the first that fits counts. From the
 * provider's list of inference profiles and its CDK's `CrossRegionInferenceProfileRegion`. `in` is kept
 * only if it is written: there is no list of the models that have it.
 */
const geographies = Object.entries(facts.geographies).map(
  ([name, regions]) => [name, new RegExp(regions)] as const,
);

/** Countries where older models use the profile of all of Asia and the Pacific. */
const nationalInAsia: ReadonlySet<string> = new Set(["jp", "au"]);
const hasNationalProfiles =
  /^(?:anthropic\.claude-(?:opus|sonnet|haiku)-(?:4-(?:[5-9]|\d\d)(?!\d)|[5-9])|amazon\.nova-2-)/;

export const regionPattern = /^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$/;

/** Partitions that are cut off from the others, and whose regions are not all public. */
const isolated = /^(us|eu)-iso[a-z]*-/;

/** What is wrong with a well-formed region; undefined when it may exist. */
export function unknownRegion(region: string): string | undefined {
  if (!regionPattern.test(region)) return undefined;
  if (knownRegions.includes(region) || isolated.test(region)) return undefined;
  const meant = suggest(region, knownRegions);
  const hint = meant === undefined ? "" : `; did you mean '${meant}'?`;
  return `is not a known region (a newer one needs its endpoint beside it)${hint}`;
}
