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
    build: buildUpstream,
    createAdapter: createAnthropicAdapter,
    listedAs: ({ baseUrl }, model) => listedAtUrl(baseUrl, model),
  };
