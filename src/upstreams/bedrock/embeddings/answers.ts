import type { EmbeddingResult, EmbeddingVector } from "../../../domain/chat/embedding.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { WholeAnswer } from "../../adapter.ts";
import { countOf, isNumbers, parseObject, type JsonObject } from "../../shared/json-fields.ts";
import { brokenAnswer } from "../decode/broken-answer.ts";
import { failureInAnswer } from "../failures/read-failure.ts";

/** An object with this field. Throws the failure that it contains instead. */
export function parseAnswer({ headers, body }: WholeAnswer, field: string): JsonObject {
  const answer = parseObject(body);
  if (answer === undefined) throw brokenAnswer("the answer is not JSON");
  const isEmpty = answer[field] === undefined || answer[field] === null;
  const failure = isEmpty ? failureInAnswer(answer, headers) : undefined;
  if (failure !== undefined) throw failure;
  return answer;
}

/** Cohere's and Nova's models report their token count only in this header. */
const tokenCountHeader = "x-amzn-bedrock-input-token-count";

/** A result with these vectors, and the token count from the body or else the header. */
export function resultOf(
  vectors: readonly unknown[],
  { headers }: WholeAnswer,
  counted?: unknown,
): EmbeddingResult {
  const inputTokens = countOf(counted) ?? countOf(headers.get(tokenCountHeader) ?? undefined);
  return { vectors: vectors.map(readVector), usage: usageOf(inputTokens) };
}

function readVector(value: unknown): EmbeddingVector {
  if (isNumbers(value) && value.length > 0) return value;
  throw brokenAnswer("a vector is not a list of numbers");
}

function usageOf(inputTokens: number | undefined): TokenUsage | undefined {
  if (inputTokens === undefined) return undefined;
  return { inputTokens, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
}
