import type { Fault } from "../faults/fault-mode.ts";
import { inflatedCount } from "../faults/inflated-usage.ts";
import type { Reply } from "../frame.ts";
import type { JsonRecord } from "../read-json.ts";
import { invalid } from "./bedrock-error.ts";
import type { Template } from "./imported/read-template.ts";
import { bodyReply } from "./reply/body-reply.ts";
import type { CapabilityRow } from "./account/capability-row.ts";
import { readCohereEmbedding } from "./embedding/cohere.ts";
import { readNovaEmbedding } from "./embedding/nova.ts";
import type { EmbeddingRequest } from "./embedding/check-body.ts";
import {
  readTitanEmbedding,
  readTitanEmbeddingV1,
  readTitanImageEmbedding,
} from "./embedding/titan.ts";

/** Reads InvokeModel's body, which is each model's own. Throws `BedrockError`. */
export function readInvocation(body: JsonRecord, row: CapabilityRow): EmbeddingRequest {
  switch (row.api) {
    case "titan-embed":
      return readTitanEmbedding(body);
    case "titan-embed-v1":
      return readTitanEmbeddingV1(body);
    case "titan-embed-image":
      return readTitanImageEmbedding(body);
    case "nova-embed":
      return readNovaEmbedding(body);
    case "cohere-embed-v3":
      return readCohereEmbedding(body, 3);
    case "cohere-embed-v4":
      return readCohereEmbedding(body, 4);
    case "everything":
      return body["texts"] === undefined ? readTitanEmbedding(body) : readCohereEmbedding(body, 3);
    case "chat":
    case "imported-llama":
    case "imported-mistral":
    case "imported-qwen":
      throw invalid("The simulator serves chat models through Converse, not through InvokeModel.");
  }
}

/** Only the header has the count for every model. */
export function invocationReply({ answer, promptTokens }: EmbeddingRequest, fault: Fault): Reply {
  const headers = countHeaders(promptTokens, fault);
  return bodyReply(answer, { fault, tokens: 0, headers });
}

function countHeaders(promptTokens: number, { mode }: Fault): Readonly<Record<string, string>> {
  if (mode === "ok-no-usage") return {};
  const told = mode === "wrong-usage" ? inflatedCount(promptTokens) : promptTokens;
  return { "x-amzn-bedrock-input-token-count": String(told) };
}

/**
 * The template of a model that InvokeModel serves chat of; undefined for other models. One that can
 * do everything is of the family whose template its prompt is written in.
 */
export function templateOf({ api }: CapabilityRow, { prompt }: JsonRecord): Template | undefined {
  switch (api) {
    case "imported-llama":
      return "llama";
    case "imported-mistral":
      return "mistral";
    case "imported-qwen":
      return "qwen";
    case "everything":
      return typeof prompt === "string" ? templateIn(prompt) : undefined;
    default:
      return undefined;
  }
}

function templateIn(prompt: string): Template {
  if (prompt.includes("<|im_start|>")) return "qwen";
  return prompt.includes("[INST]") ? "mistral" : "llama";
}
