import { z } from "zod";
import { credential, flag, httpUrl, type SettingProblem, text } from "../../../settings/values.ts";
import type { FieldsOf } from "../../kind.ts";
import { addedFamilyProblems } from "../models/facts.ts";
import { services } from "../models/apis.ts";
import { unknownRegion } from "../regions.ts";
import { familiesSchema } from "./capabilities.ts";
import { assumedRoleSchema } from "./assumed-role.ts";
import { regionName } from "./sites.ts";

const mostRegions = 16;

/** One region of Amazon Bedrock, or several, and the credential for them. */
export const fields = {
  region: regionName("Region of the provider. It or `regions` is required.").optional(),
  regions: z
    .array(regionName("Region."))
    .min(1)
    .max(mostRegions)
    .refine((regions) => new Set(regions).size === regions.length, "must not name a region twice")
    .optional()
    .meta({
      description:
        "Regions to try, in this order. Each becomes an upstream `<name>@<region>`, with the " +
        "targets whose models it has.",
    }),
  endpoint: httpUrl("Address instead of the region's own, such as a private endpoint.").optional(),
  endpoints: z
    .record(regionName("Region."), httpUrl("Address."))
    .prefault({})
    .describe("With `regions`: addresses instead of the regions' own, by region."),
  service: z
    .enum(services)
    .prefault("runtime")
    .describe("`mantle` is for models and features of OpenAI's APIs that need it."),
  fips: flag(false).describe("Uses the region's FIPS endpoint."),
  api_key: credential(
    "Sent as Bearer. Without it and `access_key_id`, the standard chain is asked: " +
      "environment, profile, web identity, container, instance.",
  ).optional(),
  access_key_id: z
    .string()
    .regex(/^\w+$/, "must be letters, digits and '_'")
    .optional()
    .describe("Access key for signing requests."),
  secret_access_key: credential("Secret of `access_key_id`.").optional(),
  session_token: credential("Session token of a temporary `access_key_id`.").optional(),
  profile: text("Profile of the shared configuration files, for the standard chain.").optional(),
  assume_role: assumedRoleSchema,
  count_tokens: flag(false).describe(
    "Counts an input that seems to exceed a key's limit before refusing it; needs the " +
      "permission bedrock:CountTokens.",
  ),
  families: familiesSchema.describe("Families of chat models, or other values for known ones."),
};

type Fields = FieldsOf<typeof fields>;

export function contradictions(upstream: Fields): readonly SettingProblem[] {
  const found: SettingProblem[] = [];
  const without = (key: keyof Fields, other: keyof Fields): void => {
    if (upstream[key] === undefined || upstream[other] === undefined) return;
    found.push({ path: [key], message: `must not be set together with ${other}` });
  };
  const needs = (key: keyof Fields, other: keyof Fields): void => {
    if (upstream[key] === undefined || upstream[other] !== undefined) return;
    found.push({ path: [key], message: `needs ${other} beside it` });
  };
  for (const key of signingKeys) without(key, "api_key");
  without("profile", "api_key");
  without("assume_role", "api_key");
  without("profile", "access_key_id");
  needs("access_key_id", "secret_access_key");
  needs("secret_access_key", "access_key_id");
  needs("session_token", "access_key_id");
  const families = addedFamilyProblems(upstream.families).map(({ path, ...problem }) => ({
    ...problem,
    path: ["families", ...path],
  }));
  return [...found, ...families, ...regionProblems(upstream), ...addressProblems(upstream)];
}

/** A region with its own address may have any name. */
function regionProblems({ region, regions, endpoint, endpoints }: Fields): SettingProblem[] {
  const one = region === undefined || endpoint !== undefined ? undefined : unknownRegion(region);
  const several = (regions ?? []).flatMap((name, index) => {
    const message = Object.hasOwn(endpoints, name) ? undefined : unknownRegion(name);
    return message === undefined ? [] : [{ path: ["regions", index], message }];
  });
  return [...(one === undefined ? [] : [{ path: ["region"], message: one }]), ...several];
}

function addressProblems(upstream: Fields): readonly SettingProblem[] {
  const { region, regions, endpoint, endpoints, fips, service } = upstream;
  const named = Object.keys(endpoints);
  const elsewhere = named.find((name) => regions?.includes(name) === false);
  const address = endpoint !== undefined ? "endpoint" : named.length > 0 ? "endpoints" : undefined;
  const checks: readonly (readonly [boolean, string, string])[] = [
    [region === undefined && regions === undefined, "region", "is required, unless regions is set"],
    [
      region !== undefined && regions !== undefined,
      "regions",
      "must not be set together with region",
    ],
    [
      regions !== undefined && endpoint !== undefined,
      "endpoint",
      "must not be set together with regions: endpoints has one for each",
    ],
    [
      regions === undefined && named.length > 0,
      "endpoints",
      "needs regions beside it; one region has endpoint",
    ],
    [elsewhere !== undefined, "endpoints", `names ${elsewhere}, which is not in regions`],
    [fips && service === "mantle", "fips", "must not be set with service: mantle, which has none"],
    [fips && address !== undefined, "fips", `must not be set together with ${address}`],
  ];
  return checks.flatMap(([isWrong, key, message]) => (isWrong ? [{ path: [key], message }] : []));
}

const signingKeys = ["access_key_id", "secret_access_key", "session_token"] as const;
