import type { ChatRequest } from "../../domain/chat/chat.ts";
import type { WholeAnswer } from "../adapter.ts";
import { countOf, parseObject } from "../shared/json-fields.ts";
import type { BedrockModel } from "./models/bedrock-model.ts";
import { brokenAnswer } from "./decode/broken-answer.ts";
import { encodeContent } from "./encode/encode-converse.ts";
import { encodePathSegment } from "./endpoint.ts";
import { foundationModelOf } from "./models/model-families.ts";

/** CountTokens supports only foundation models, so a regional profile is counted by its model. */
export function countPathOf(model: BedrockModel): string | undefined {
  const { identifier, capabilities, settings } = model;
  const foundationModel =
    foundationModelOf(identifier) ?? foundationModelOf(settings.baseModel ?? identifier);
  if (!capabilities.countTokens || foundationModel === undefined) return undefined;
  return `/model/${encodePathSegment(foundationModel)}/count-tokens`;
}

/** The body of `POST /model/{id}/count-tokens`. Throws as `encodeConverse` does. */
export function encodeCountTokens(request: ChatRequest, model: BedrockModel): string {
  return JSON.stringify({ input: { converse: encodeContent(request, model) } });
}

/** Reads `{"inputTokens": n}`. */
export function decodeCountTokens({ body }: WholeAnswer): number {
  const count = countOf(parseObject(body)?.["inputTokens"]);
  if (count === undefined) throw brokenAnswer("the answer has no count");
  return count;
}
