import { z } from "zod";
import type { TargetSite, WrittenTarget } from "../../kind.ts";
import { type Service, services } from "../models/apis.ts";
import { ModelFamilies } from "../models/facts.ts";
import { familySchema } from "./capabilities.ts";
import { fitToRegion, regionOfArn, regionPattern } from "../regions.ts";

/** The location of an upstream; `regions` is set for one in several regions. */
interface UpstreamRegions {
  readonly region?: string | undefined;
  readonly regions?: readonly string[] | undefined;
}

/** One upstream in one region, under its own name. */
export interface RegionalUpstream {
  readonly name: string;
  readonly region: string | undefined;
  /** Whether identifiers are adapted to the region. */
  readonly isOneOfSeveral: boolean;
}

/** A target's model, as far as it could be read. */
export interface TargetModel {
  readonly model: string;
  readonly family?: string | undefined;
  /** By region, if it differs from what `model` implies. */
  readonly identifiers: Readonly<Record<string, string>>;
  /** ARNs by the environment whose calls use them. */
  readonly profiles: Readonly<Record<string, readonly string[]>>;
}

/** A target in one region. */
export interface Site extends TargetSite {
  readonly region: string | undefined;
}

/** A region of Amazon's cloud. */
export function regionName(about: string) {
  return z
    .string()
    .regex(regionPattern, "must be a region such as us-east-1")
    .meta({ title: "region", description: about });
}

const textOrNothing = z.string().optional().catch(undefined);
const nothing = { identifiers: {}, profiles: {} };

const upstreamOutline = z
  .object({
    region: textOrNothing,
    regions: z.array(z.string()).optional().catch(undefined),
    service: z.enum(services).catch("runtime"),
    families: z.record(z.string(), familySchema.catch({ capabilities: {} })).catch({}),
  })
  .catch({ region: undefined, service: "runtime", families: {} });

const sectionOutline = z
  .object({
    family: textOrNothing,
    identifiers: z.record(z.string(), z.string()).catch({}),
    profiles: z
      .record(
        z.string(),
        z.union([z.string(), z.array(z.string())]).transform((arns) => [arns].flat()),
      )
      .catch({}),
  })
  .catch(nothing);

/** A target and the location of its upstream, even if other parts of them are wrong. */
export function outlineOf({ model, section, upstream }: WrittenTarget): {
  readonly target: TargetModel;
  readonly upstreams: readonly RegionalUpstream[];
  readonly families: ModelFamilies;
  readonly service: Service;
} {
  const target = { model, ...sectionOutline.parse(section) };
  const fields = upstreamOutline.parse(upstream.fields);
  return {
    target,
    upstreams: regionalUpstreams(upstream.name, fields),
    families: new ModelFamilies(fields.families),
    service: fields.service,
  };
}

/** An upstream in several regions is one upstream for each, named with `@` and the region. */
export function regionalUpstreams(
  name: string,
  { region, regions }: UpstreamRegions,
): RegionalUpstream[] {
  if (regions === undefined) return [{ name, region, isOneOfSeveral: false }];
  return regions.map((each) => ({ name: `${name}@${each}`, region: each, isOneOfSeveral: true }));
}

/** Where a target serves: in every region of its upstream that has the model. */
export function sitesIn(
  target: TargetModel,
  upstreams: readonly RegionalUpstream[],
): readonly Site[] {
  return upstreams.flatMap(({ name, region, isOneOfSeveral }, turn) => {
    const model = isOneOfSeveral ? modelIn(region, target) : target.model;
    if (model === undefined) return [];
    return [{ upstream: name, region, model, turn, modelFor: profilesIn(region, target) }];
  });
}

function modelIn(region: string | undefined, target: TargetModel): string | undefined {
  if (region === undefined) return target.model;
  return target.identifiers[region] ?? fitToRegion(target.model, region);
}

/** The one ARN of each environment that is valid in the region. */
function profilesIn(region: string | undefined, { profiles }: TargetModel): Site["modelFor"] {
  const found = Object.entries(profiles).flatMap(([environment, arns]) => {
    const arn = arns.find((each) => regionOfArn(each) === region);
    return arn === undefined ? [] : [[environment, arn] as const];
  });
  return Object.fromEntries(found);
}
