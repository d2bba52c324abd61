import { type SettingProblem, withSuggestion } from "../../../settings/values.ts";
import { type JsonObject, objectOf } from "../../../domain/json-fields.ts";
import { suggest } from "../../../domain/suggest.ts";
import type { TargetContext, WrittenTarget } from "../../kind.ts";
import { apis, apisOf, type Service, usualApi } from "../models/apis.ts";
import {
  embeddingFamilies,
  foundationModelOf,
  isEmbeddingFamily,
  type ModelFamilies,
} from "../models/facts.ts";
import { meantModel } from "../models/model-warnings.ts";
import { fitToRegion, regionOfArn } from "../regions.ts";
import { outlineOf, sitesIn, type TargetModel, type RegionalUpstream } from "./sites.ts";

/** A target and the location of its upstream, as far as they could be read. */
interface TargetFacts extends TargetModel, TargetContext {
  readonly upstreams: readonly RegionalUpstream[];
  readonly families: ModelFamilies;
  readonly service: Service;
}

/** Checks that a target's model is known if that is necessary, and valid at its upstream. */
export function targetProblems(
  written: WrittenTarget,
  context: TargetContext,
): readonly SettingProblem[] {
  const { target, ...outline } = outlineOf(written);
  const facts = { ...target, ...context, ...outline };
  return [
    ...unknownFamily(facts),
    ...familyProblems(facts),
    ...apiProblems(facts, objectOf(written.section) ?? {}),
    ...regionProblems(facts),
  ];
}

/** Settings that native APIs have no field for. */
const converseKeys = [
  "validate_answers",
  "prompt_cache",
  "request_metadata",
  "service_tier",
  "latency",
  "additional_fields",
] as const;

function apiProblems(target: TargetFacts, section: JsonObject): readonly SettingProblem[] {
  const { model, modelKind, service } = target;
  const path = [...target.path, "bedrock"];
  const found: SettingProblem[] = [];
  if (service === "mantle") found.push(...mantleProblems(target));
  if (modelKind === "embedding") return found;
  const api = apis.find((each) => each === section["api"]) ?? usualApi(model, service);
  const known = apisOf(model, service);
  const family = target.family ?? target.families.familyOf(model) ?? "claude";
  if (known?.length === 0) {
    const other = service === "mantle" ? "runtime" : "mantle";
    const message = `is not at this address: use an upstream with service: ${other}`;
    found.push({ path: [...target.path, "model"], message });
  } else if (known !== undefined && !known.includes(api)) {
    const message = `must be ${known.join(" or ")}: ${model} has no other API at this address`;
    found.push({ path: [...path, "api"], message });
  } else if (known === undefined && api === "messages" && !family.startsWith("claude")) {
    found.push({
      path: [...path, "api"],
      message: "must not be messages: only Claude has this API",
    });
  }
  if (api === "converse") return found;
  for (const key of converseKeys) {
    if (section[key] === undefined) continue;
    found.push({ path: [...path, key], message: "is for api: converse only" });
  }
  // Measured: aws-samples/sample-per-model-bedrock. Nobody would notice that it does nothing.
  const isIgnored = api === "openai-responses" || service === "mantle";
  if (section["guardrail"] !== undefined && isIgnored) {
    const what = service === "mantle" ? "service: mantle" : "api: openai-responses";
    const message = `is ignored by ${what}: use api: converse or openai-chat at the runtime address`;
    found.push({ path: [...path, "guardrail"], message });
  }
  return found;
}

function mantleProblems({ path, model, modelKind }: TargetFacts): readonly SettingProblem[] {
  const at = [...path, "model"];
  if (modelKind === "embedding") {
    return [{ path: at, message: "is at service: runtime only, as all embedding models are" }];
  }
  const foundation = foundationModelOf(model);
  if (foundation === model) return [];
  const meant = foundation ?? "the foundation model";
  return [{ path: at, message: `must be ${meant}: service: mantle knows no profiles and ARNs` }];
}

/** An upstream may have families of its own. */
function unknownFamily(target: TargetFacts): readonly SettingProblem[] {
  const { modelKind, family, families } = target;
  const { names } = families;
  if (modelKind !== "chat" || family === undefined || names.includes(family)) return [];
  const path = [...target.path, "bedrock", "family"];
  const message = `must be one of: ${names.join(", ")}`;
  return [withSuggestion({ path, message }, suggest(family, names))];
}

/** Checks that the model's family is known if that is necessary, and fits the alias. */
function familyProblems(target: TargetFacts): readonly SettingProblem[] {
  const { model, modelKind, family, families } = target;
  const path = [...target.path, "model"];
  const named = families.familyOf(model);
  if (named !== undefined) {
    const actual = isEmbeddingFamily(named) ? "embedding" : "chat";
    if (modelKind === undefined || modelKind === actual) return [];
    return [{ path, message: `is ${article(actual)} model, but the alias is not of that kind` }];
  }
  if (family !== undefined) return [];
  if (model.startsWith("arn:")) {
    return [{ path, message: "an ARN hides the model: the target needs bedrock.family" }];
  }
  if (modelKind !== "embedding") return [];
  const message =
    "is not a known embedding model: the target needs bedrock.family, which is one of " +
    embeddingFamilies.join(", ");
  return [withSuggestion({ path, message }, meantModel(model))];
}

function article(kind: "chat" | "embedding"): string {
  return kind === "chat" ? "a chat" : "an embedding";
}

/** Checks that a target's identifiers are valid in the regions of its upstream. */
function regionProblems(target: TargetFacts): readonly SettingProblem[] {
  const regions = target.upstreams.flatMap(({ region }) => region ?? []);
  if (regions.length === 0) return [];
  return [
    ...modelProblems(target, regions),
    ...identifierProblems(target, regions),
    ...profileProblems(target),
  ];
}

function modelProblems(
  { path: target, model, identifiers, upstreams }: TargetFacts,
  regions: readonly string[],
): readonly SettingProblem[] {
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
    `no profile of this kind is known in ${unknown}: set the identifier for it under ` +
    "bedrock.identifiers, or name a foundation model or a global profile";
  return [{ path, message }];
}

function identifierProblems(
  { path, identifiers, upstreams }: TargetFacts,
  regions: readonly string[],
): readonly SettingProblem[] {
  const isOneOfSeveral = upstreams.some((each) => each.isOneOfSeveral);
  return Object.entries(identifiers).flatMap(([region, identifier]) => {
    const own = regionOfArn(identifier) ?? region;
    const message = !isOneOfSeveral
      ? "is for upstreams with regions only; here model is the identifier"
      : !regions.includes(region)
        ? `the upstream is not in ${region}, but in ${regions.join(", ")}`
        : own === region
          ? undefined
          : `is an ARN of ${own}, which is not valid in ${region}`;
    if (message === undefined) return [];
    return [{ path: [...path, "bedrock", "identifiers", region], message }];
  });
}

function profileProblems(facts: TargetFacts): readonly SettingProblem[] {
  const { path: target, profiles, environments } = facts;
  const served = sitesIn(facts, facts.upstreams).flatMap(({ region }) => region ?? []);
  return Object.entries(profiles).flatMap(([environment, arns]) => {
    const path = [...target, "bedrock", "profiles", environment];
    if (!environments.includes(environment)) {
      const message = "no environment has this name";
      return [withSuggestion({ path, message }, suggest(environment, environments))];
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
