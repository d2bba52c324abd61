import { objectOf } from "../../domain/json-fields.ts";
import type { UpstreamKind } from "../kind.ts";
import { listedAtUrl } from "../shared/listed-model.ts";
import { createOpenAiAdapter, type TargetedSettings } from "./adapter.ts";
import {
  buildSettings,
  contradictions,
  fields,
  responsesTargets,
  targetSections,
} from "./config.ts";

export const openaiKind: UpstreamKind<typeof fields, typeof targetSections, TargetedSettings> = {
  name: "openai",
  about: "OpenAI's, spoken by many servers: `profile` names those that Sluice knows",
  fields,
  answerTimes: { firstByte: "60s", idle: "30s" },
  // Python and Node servers keep it for five seconds unless told otherwise.
  idleConnections: "4s",
  contradictions,
  targetSections,
  promptCache({ upstream }) {
    const forwarded = objectOf(upstream.fields)?.["forward_fields"];
    const takesMarks = Array.isArray(forwarded) && forwarded.includes("cache_control");
    return takesMarks
      ? { filled: "always", keepsAnHour: true }
      : { filled: "by_provider", keepsAnHour: false };
  },
  build: ({ name, fields: written, targets }) => [
    { name, settings: { ...buildSettings(written), responses: responsesTargets(targets) } },
  ],
  createAdapter: createOpenAiAdapter,
  listedAs: ({ baseUrl }, model) => listedAtUrl(baseUrl, model),
};
