import type { TargetSections, UpstreamKind } from "../kind.ts";
import { listedAtUrl } from "../shared/listed-model.ts";
import { createOpenAiAdapter } from "./adapter.ts";
import { buildSettings, contradictions, fields, type OpenAiSettings } from "./config.ts";

export const openaiKind: UpstreamKind<typeof fields, TargetSections, OpenAiSettings> = {
  name: "openai",
  about: "OpenAI's, spoken by many servers: `profile` names those that Sluice knows",
  fields,
  answerTimes: { firstByte: "60s", idle: "30s" },
  // Python and Node servers keep it for five seconds unless told otherwise.
  idleConnections: "4s",
  contradictions,
  build: ({ name, fields: written }) => [{ name, settings: buildSettings(written) }],
  createAdapter: createOpenAiAdapter,
  listedAs: ({ baseUrl }, model) => listedAtUrl(baseUrl, model),
};
