import { countTokens } from "../answer/tokenizer.ts";
import { textVector } from "../embedding/text-vector.ts";
import type { JsonRecord } from "../read-json.ts";
import {
  checkKeys,
  checkLength,
  malformed,
  readChoice,
  readChoices,
  tooManyTokens,
  type EmbeddingRequest,
} from "./embedding-request.ts";

const mostTokens = 8192;
const mostCharacters = 50_000;
/** How long vectors are that were not to be normalised. */
const plainLength = 4;

/** Titan text embeddings, version 2: one text a call. Throws `BedrockError`. */
export function readTitanEmbedding(body: JsonRecord): EmbeddingRequest {
  checkKeys(body, ["inputText"], ["dimensions", "normalize", "embeddingTypes"]);
  const { inputText, normalize = true } = body;
  if (typeof inputText !== "string") throw malformed("#/inputText: expected type: String");
  if (typeof normalize !== "boolean") throw malformed("#/normalize: expected type: Boolean");
  checkLength(inputText, "", mostCharacters);
  const dimensions = readChoice(body, "dimensions", [256, 512, 1024]) ?? 1024;
  const types = readChoices(body, "embeddingTypes", ["float", "binary"]) ?? ["float"];
  const promptTokens = countTokens(inputText);
  if (promptTokens > mostTokens) throw tooManyTokens(mostTokens, promptTokens);
  const unit = Array.from(textVector(inputText, dimensions));
  const float = normalize ? unit : unit.map((value) => value * plainLength);
  const binary = unit.map((value) => (value > 0 ? 1 : 0));
  const isFloat = types.includes("float");
  const answer: JsonRecord = {
    ...(isFloat ? { embedding: float } : {}),
    embeddingsByType: {
      ...(types.includes("binary") ? { binary } : {}),
      ...(isFloat ? { float } : {}),
    },
    inputTextTokenCount: promptTokens,
  };
  return { promptTokens, answer };
}
