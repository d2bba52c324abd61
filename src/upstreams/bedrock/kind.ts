import type { UpstreamKind, WrittenTarget } from "../kind.ts";
import { objectOf } from "../../domain/json-fields.ts";
import type { Capabilities } from "./config/capabilities.ts";
import { createBedrockAdapter } from "./adapter.ts";
import { buildUpstreams } from "./config/build.ts";
import { contradictions, fields } from "./config/fields.ts";
import { outlineOf, sitesIn } from "./config/sites.ts";
import { targetProblems } from "./config/target-problems.ts";
import { targetSections } from "./config/target-sections.ts";
import { usualApi } from "./models/apis.ts";
import { namedModelOf } from "./models/facts.ts";
import { doubtfulModels, endingModels } from "./models/model-warnings.ts";
import { listedAtBedrock } from "../shared/listed-model.ts";
import type { BedrockSettings } from "./settings.ts";

export const bedrockKind: UpstreamKind<typeof fields, typeof targetSections, BedrockSettings> = {
  name: "bedrock",
  about: "Amazon Bedrock",
  fields,
  // A whole answer arrives with its first byte, and a stream is silent for minutes while a model
  // writes the arguments of a tool: silences of 125 s have been observed.
  answerTimes: { firstByte: "5m", idle: "5m" },
  idleConnections: "30s",
  contradictions,
  targetSections,
  targetProblems,
  capabilities(written) {
    const { tools, images, documents, reasoning, jsonSchema } = knownOf(written);
    return {
      tools,
      images,
      documents,
      reasoning: reasoning === undefined ? undefined : reasoning !== "none",
      json_schema: jsonSchema,
    };
  },
  outputQuotaWeight: (written) => knownOf(written).outputQuotaWeight ?? 1,
  promptCache(written) {
    const { promptCaching = false, promptCacheHour = false } = knownOf(written);
    const section = objectOf(written.section);
    const api = section?.["api"] ?? usualApi(written.model, outlineOf(written).service);
    if (api === "messages") return { filled: "as_asked", keepsAnHour: true };
    if (api !== "converse") return { filled: "by_provider", keepsAnHour: false };
    if (!promptCaching) return undefined;
    const isAutomatic = section?.["prompt_cache"] === "auto";
    return { filled: isAutomatic ? "always" : "as_asked", keepsAnHour: promptCacheHour };
  },
  sites(written) {
    const { target, upstreams } = outlineOf(written);
    return sitesIn(target, upstreams);
  },
  build: buildUpstreams,
  createAdapter: createBedrockAdapter,
  endingModels,
  doubtfulModels,
  listedAs({ region, models }, identifier) {
    const hidden = [...models.values()].flatMap((each) => each.get(identifier)?.baseModel ?? []);
    const named = [identifier, ...hidden].flatMap((each) => namedModelOf(each) ?? [])[0];
    return named === undefined ? undefined : listedAtBedrock(named, region);
  },
};

/** What is known of a target's model: by its family, and what the operator says. */
function knownOf(written: WrittenTarget): Partial<Capabilities> {
  const { target, families } = outlineOf(written);
  const family = target.family ?? families.familyOf(target.model);
  // Of the section, which has been read, only what the operator says is there.
  const own: Partial<Capabilities> = objectOf(objectOf(written.section)?.["capabilities"]) ?? {};
  return family === undefined ? own : { ...families.capabilitiesOf(family), ...own };
}
