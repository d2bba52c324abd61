import { objectOf } from "../../domain/json-fields.ts";
import type { UpstreamKind } from "../kind.ts";
import { listedAtUrl } from "../shared/listed-model.ts";
import { createAnthropicAdapter } from "./adapter.ts";
import {
  type AnthropicSettings,
  buildUpstream,
  contradictions,
  fields,
  targetSections,
} from "./config.ts";
import { capabilitiesOf, claudeFamilies, familyOf } from "./models.ts";

export const anthropicKind: UpstreamKind<typeof fields, typeof targetSections, AnthropicSettings> =
  {
    name: "anthropic",
    about: "Anthropic's Messages API",
    fields,
    // A whole answer arrives with its first byte, and streams have pings.
    answerTimes: { firstByte: "5m", idle: "60s" },
    idleConnections: "30s",
    contradictions,
    targetSections,
    capabilities({ model, section }) {
      const written = objectOf(section)?.["family"];
      const family = claudeFamilies.find((each) => each === written) ?? familyOf(model);
      const { tools, images, documents, reasoning, jsonSchema } = capabilitiesOf(family);
      return { tools, images, documents, reasoning: reasoning !== "none", json_schema: jsonSchema };
    },
    promptCache({ upstream }) {
      const url = String(objectOf(upstream.fields)?.["base_url"]);
      return { filled: hostsOfClaude.test(url) ? "as_asked" : "by_provider", keepsAnHour: true };
    },
    build: buildUpstream,
    createAdapter: createAnthropicAdapter,
    listedAs: ({ baseUrl }, model) => listedAtUrl(baseUrl, model),
  };

/** Other servers of this API read caches that nobody asked for. */
const hostsOfClaude = /^https:\/\/(api\.anthropic\.com|bedrock-[^/]+\.(amazonaws\.com|api\.aws))\b/;
