import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import type { EmbeddingResult } from "../../../domain/chat/embedding.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { VectorAnswer } from "../../adapter.ts";
import { countOf, parseObject, type JsonObject } from "../../shared/json-fields.ts";
import { vectorAt } from "../../shared/vector-at.ts";
import { failureInAnswer } from "../failures/read-failure.ts";

/** An object with this field. Throws the failure that it contains instead. */
export function parseAnswer({ headers, json }: VectorAnswer, field: string): JsonObject {
  const answer = parseObject(json);
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
  { headers, vectors: scanned }: VectorAnswer,
  counted?: unknown,
): EmbeddingResult {
  const inputTokens = countOf(counted) ?? countOf(headers.get(tokenCountHeader) ?? undefined);
  const usage = usageOf(inputTokens);
  const read = vectors.map((value) => {
    const vector = vectorAt(value, scanned);
    if (vector === undefined) {
      throw brokenAnswer("a vector is not a list of numbers").withUsage(usage);
    }
    return vector;
  });
  return { vectors: read, usage };
}

function usageOf(inputTokens: number | undefined): TokenUsage | undefined {
  if (inputTokens === undefined) return undefined;
  return { inputTokens, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
}
