import { fitToRegion, regionOfArn } from "../../upstreams/bedrock/regions/fit-to-region.ts";
import { placesOf, type PlacedModel, type PlacedName } from "./bedrock-places.ts";
import type { SchemaProblem } from "../problems/schema-problems.ts";
import { suggest } from "../problems/suggest.ts";

/** A target of kind `bedrock`, with where its upstream is, as far as it could be read. */
export interface PlacedFacts extends PlacedModel {
  readonly path: SchemaProblem["path"];
  readonly upstreams: readonly PlacedName[];
  /** Names of all of the file. */
  readonly environments: readonly string[];
}

/** Whether a target's identifiers are good in the regions of its upstream. */
export function bedrockPlaceProblems(target: PlacedFacts): readonly SchemaProblem[] {
  const regions = target.upstreams.flatMap(({ region }) => region ?? []);
  if (regions.length === 0) return [];
  return [
    ...modelProblems(target, regions),
    ...identifierProblems(target, regions),
    ...profileProblems(target),
  ];
}

function modelProblems(
  { path: target, model, identifiers, upstreams }: PlacedFacts,
  regions: readonly string[],
): readonly SchemaProblem[] {
  const path = [...target, "model"];
  const own = regionOfArn(model);
  const where = regions.join(", ");
  if (own !== undefined && !regions.includes(own)) {
    return [{ path, message: `is an ARN of ${own}, but the upstream is in ${where}` }];
  }
  if (own !== undefined || upstreams.every(({ isOneOfSeveral }) => !isOneOfSeveral)) return [];
  const unknown = regions.find(
    (region) => identifiers[region] === undefined && fitToRegion(model, region) === undefined,
  );
  if (unknown === undefined) return [];
  const message =
    `no profile of this kind is known in ${unknown}: say the identifier there under ` +
    "bedrock.identifiers, or name a foundation model or a global profile";
  return [{ path, message }];
}

function identifierProblems(
  { path, identifiers, upstreams }: PlacedFacts,
  regions: readonly string[],
): readonly SchemaProblem[] {
  const isOneOfSeveral = upstreams.some((each) => each.isOneOfSeveral);
  return Object.entries(identifiers).flatMap(([region, identifier]) => {
    const own = regionOfArn(identifier) ?? region;
    const message = !isOneOfSeveral
      ? "is for upstreams with regions only; here model is the identifier"
      : !regions.includes(region)
        ? `the upstream is not in ${region}, but in ${regions.join(", ")}`
        : own === region
          ? undefined
          : `is an ARN of ${own}, which is not good in ${region}`;
    if (message === undefined) return [];
    return [{ path: [...path, "bedrock", "identifiers", region], message }];
  });
}

function profileProblems(facts: PlacedFacts): readonly SchemaProblem[] {
  const { path: target, profiles, environments } = facts;
  const served = placesOf(facts, facts.upstreams).flatMap(({ region }) => region ?? []);
  return Object.entries(profiles).flatMap(([environment, arns]) => {
    const path = [...target, "bedrock", "profiles", environment];
    if (!environments.includes(environment)) {
      const message = "names an environment that is not configured";
      const suggestion = suggest(environment, environments);
      return [suggestion === undefined ? { path, message } : { path, message, suggestion }];
    }
    const found = arns.map((arn) => regionOfArn(arn));
    const elsewhere = found.find((region) => region !== undefined && !served.includes(region));
    const lacking = served.find((region) => !found.includes(region));
    const twice = found.find((region, index) => found.indexOf(region) < index);
    const message =
      elsewhere !== undefined
        ? `has an ARN of ${elsewhere}, but the target serves in ${served.join(", ")}`
        : lacking !== undefined
          ? `has no ARN of ${lacking}, where the target serves too`
          : twice !== undefined
            ? `has two ARNs of ${twice}`
            : undefined;
    return message === undefined ? [] : [{ path, message }];
  });
}
