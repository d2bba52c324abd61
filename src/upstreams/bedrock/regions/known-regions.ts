import { suggest } from "../../../domain/suggest.ts";

/**
 * Regions of Amazon's cloud, whether or not they have Bedrock. Source: AWS General Reference, and
 * for those of governments the partitions of the official SDK.
 */
const knownRegions: readonly string[] = [
  ...numbered("us-east", 1, 2),
  ...numbered("us-west", 1, 2),
  ...numbered("ca-central", 1),
  ...numbered("ca-west", 1),
  ...numbered("mx-central", 1),
  ...numbered("sa-east", 1),
  ...numbered("sa-west", 1),
  ...numbered("eu-central", 1, 2),
  ...numbered("eu-west", 1, 2, 3),
  ...numbered("eu-north", 1),
  ...numbered("eu-south", 1, 2),
  ...numbered("eusc-de-east", 1),
  ...numbered("il-central", 1),
  ...numbered("me-central", 1),
  ...numbered("me-south", 1),
  ...numbered("me-west", 1),
  ...numbered("af-south", 1),
  ...numbered("ap-east", 1, 2),
  ...numbered("ap-south", 1, 2),
  ...numbered("ap-southeast", 1, 2, 3, 4, 5, 6, 7),
  ...numbered("ap-northeast", 1, 2, 3),
  ...numbered("cn-north", 1),
  ...numbered("cn-northwest", 1),
  ...numbered("us-gov-east", 1),
  ...numbered("us-gov-west", 1),
];

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

function numbered(place: string, ...numbers: readonly number[]): readonly string[] {
  return numbers.map((number) => `${place}-${number}`);
}
