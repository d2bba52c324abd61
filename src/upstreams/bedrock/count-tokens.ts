import type { Conversation } from "../../domain/chat/conversation.ts";
import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { UpstreamRequest } from "../adapter.ts";
import type { BedrockModel } from "./models/bedrock-model.ts";
import { encodeContent } from "./encode/encode-converse.ts";
import { encodePathSegment } from "./endpoint.ts";
import { foundationModelOf } from "./models/facts.ts";

/** CountTokens supports only foundation models, so a regional profile is counted by its model. */
export function countPathOf(model: BedrockModel): string | undefined {
  const { identifier, capabilities, settings } = model;
  const foundationModel =
    foundationModelOf(identifier) ?? foundationModelOf(settings.baseModel ?? identifier);
  if (!capabilities.countTokens || foundationModel === undefined) return undefined;
  return `/model/${encodePathSegment(foundationModel)}/count-tokens`;
}

/** The body of `POST /model/{id}/count-tokens`. Throws as `encodeConverse` does. */
export function encodeCountTokens(request: Conversation, model: BedrockModel): string {
  return JSON.stringify({ input: { converse: encodeContent(request, model) } });
}

/** Whether a request is one for a count. */
export function asksForCount({ url }: UpstreamRequest): boolean {
  return /\/count[-_]tokens$/.test(url);
}

/** A refused count, with a hint of its own: its permission is not that of an answer. */
export function asCountFailure(details: UpstreamFailureDetails): UpstreamFailureDetails {
  const cannotCount = /support(?:s|ed)? counting/i.test(details.message);
  const kind = cannotCount ? "unknown-model" : details.kind;
  switch (kind) {
    case "bad-credential":
      return { ...details, hint: permissionHint };
    case "unknown-model":
      return { ...details, kind, hint: modelHint };
    default:
      return details;
  }
}

const permissionHint =
  "allow bedrock:CountTokens on the foundation model (bedrock-mantle:CountTokens), or set count_tokens: false at the upstream";
const modelHint =
  "the model is not counted in this region: set bedrock.capabilities.count_tokens: false at the target";
