import type { Fault } from "../faults/fault-mode.ts";
import type { Reply } from "../frame.ts";
import type { JsonRecord } from "../read-json.ts";
import { invalid } from "./bedrock-error.ts";
import type { Template } from "./imported/read-template.ts";
import { bodyReply, countHeaders } from "./reply/body-reply.ts";
import type { CapabilityRow } from "./account/capability-row.ts";
import { readCohereEmbedding } from "./embedding/cohere.ts";
import { readNovaEmbedding } from "./embedding/nova.ts";
import type { EmbeddingResult } from "./embedding/check-body.ts";
import {
  readTitanEmbedding,
  readTitanEmbeddingV1,
  readTitanImageEmbedding,
} from "./embedding/titan.ts";

type Api = CapabilityRow["api"];

const embeddings: Readonly<Partial<Record<Api, (body: JsonRecord) => EmbeddingResult>>> = {
  "titan-embed": readTitanEmbedding,
  "titan-embed-v1": readTitanEmbeddingV1,
  "titan-embed-image": readTitanImageEmbedding,
  "nova-embed": readNovaEmbedding,
  "cohere-embed-v3": (body) => readCohereEmbedding(body, 3),
  "cohere-embed-v4": (body) => readCohereEmbedding(body, 4),
  everything: (body) =>
    body["texts"] === undefined ? readTitanEmbedding(body) : readCohereEmbedding(body, 3),
};

/** Reads InvokeModel's body, which differs by model. Throws `BedrockError`. */
export function readInvocation(body: JsonRecord, { api }: CapabilityRow): EmbeddingResult {
  const read = embeddings[api];
  if (read !== undefined) return read(body);
  throw invalid("The simulator serves chat models through Converse, not through InvokeModel.");
}

/** Only the header has the count for every model. */
export function invocationReply({ answer, promptTokens }: EmbeddingResult, fault: Fault): Reply {
  const headers = countHeaders({ input: promptTokens }, fault);
  return bodyReply(answer, { fault, tokens: 0, headers });
}

const templates: Readonly<Partial<Record<Api, Template>>> = {
  "imported-llama": "llama",
  "imported-mistral": "mistral",
  "imported-qwen": "qwen",
};

/**
 * The template of an imported chat model; undefined for other models. For a model that supports
 * everything, the prompt decides.
 */
export function templateOf({ api }: CapabilityRow, { prompt }: JsonRecord): Template | undefined {
  if (api === "everything" && typeof prompt === "string") return templateIn(prompt);
  return templates[api];
}

function templateIn(prompt: string): Template {
  if (prompt.includes("<|im_start|>")) return "qwen";
  return prompt.includes("[INST]") ? "mistral" : "llama";
}
