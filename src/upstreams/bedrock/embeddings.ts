import type { EmbeddingRequest, EmbeddingResult, EmbeddingVector } from "../../domain/embedding.ts";
import { UpstreamFailure } from "../../domain/upstream-failure.ts";
import type { TokenUsage } from "../../domain/usage.ts";
import type { WholeAnswer } from "../adapter.ts";
import {
  countOf,
  isNumbers,
  isObject,
  listOf,
  parseObject,
  type JsonObject,
} from "../shared/json-fields.ts";
import { brokenAnswer } from "./broken-answer.ts";
import type { EmbeddingFamily } from "./model-families.ts";
import { failureInAnswer } from "./read-failure.ts";
import type { BedrockModelSettings } from "./settings.ts";

/** How one family of embedding models is asked through InvokeModel. */
export interface EmbeddingWire {
  /** Most texts of one request. */
  readonly batchLimit: number;
  encode(request: EmbeddingRequest, settings: InputSettings): string;
  decode(answer: WholeAnswer): EmbeddingResult;
}

export type InputSettings = Pick<BedrockModelSettings, "inputType" | "truncate">;

export const embeddingWires: Readonly<Record<EmbeddingFamily, EmbeddingWire>> = {
  "titan-embed-v2": { batchLimit: 1, encode: encodeTitan, decode: decodeTitan },
  "cohere-embed-v3": { batchLimit: 96, encode: encodeCohereV3, decode: decodeCohere },
  "cohere-embed-v4": { batchLimit: 96, encode: encodeCohereV4, decode: decodeCohere },
};

function encodeTitan(request: EmbeddingRequest): string {
  refuseOtherDimensions(request, [256, 512, 1024]);
  const { dimensions } = request;
  const [inputText] = texts(request);
  return JSON.stringify({ inputText, dimensions, normalize: true });
}

function decodeTitan(whole: WholeAnswer): EmbeddingResult {
  const answer = parseAnswer(whole, "embedding");
  return {
    vectors: [readVector(answer["embedding"])],
    usage: usageOf(countOf(answer["inputTextTokenCount"])),
  };
}

function encodeCohereV3(request: EmbeddingRequest, settings: InputSettings): string {
  refuseOtherDimensions(request, [1024]);
  const truncate = { none: "NONE", start: "START", end: "END" }[settings.truncate];
  return JSON.stringify({ ...cohereFields(request, settings), truncate });
}

function encodeCohereV4(request: EmbeddingRequest, settings: InputSettings): string {
  refuseOtherDimensions(request, [256, 512, 1024, 1536]);
  const truncate = { none: "NONE", start: "LEFT", end: "RIGHT" }[settings.truncate];
  const fields = cohereFields(request, settings);
  return JSON.stringify({ ...fields, truncate, output_dimension: request.dimensions });
}

function cohereFields(request: EmbeddingRequest, { inputType }: InputSettings): object {
  return { texts: texts(request), input_type: inputType, embedding_types: ["float"] };
}

/** Cohere's models tell their token count in a header only. */
const tokenCountHeader = "x-amzn-bedrock-input-token-count";

function decodeCohere(whole: WholeAnswer): EmbeddingResult {
  const { embeddings } = parseAnswer(whole, "embeddings");
  // A list, or lists by type: which of the two depends on version and on what was asked.
  const vectors = listOf(isObject(embeddings) ? embeddings["float"] : embeddings);
  if (vectors === undefined) throw brokenAnswer("the answer has no vectors");
  return {
    vectors: vectors.map(readVector),
    usage: usageOf(countOf(whole.headers.get(tokenCountHeader) ?? undefined)),
  };
}

function texts({ inputs }: EmbeddingRequest): readonly string[] {
  return inputs.map((input) => {
    if (typeof input === "string") return input;
    throw new Error("token ids must become text before they come here");
  });
}

function refuseOtherDimensions(request: EmbeddingRequest, known: readonly number[]): void {
  const { dimensions } = request;
  if (dimensions === undefined || known.includes(dimensions)) return;
  const list = known.length === 1 ? `only ${known[0]}` : `one of ${known.join(", ")}`;
  throw new UpstreamFailure({
    kind: "unsupported",
    message: `Invalid 'dimensions': ${dimensions}. This model supports ${list}.`,
    param: "dimensions",
  });
}

/** An object with this field, or the failure that it tells instead. */
function parseAnswer({ headers, body }: WholeAnswer, field: string): JsonObject {
  const answer = parseObject(body);
  if (answer === undefined) throw brokenAnswer("the answer is not JSON");
  const isEmpty = answer[field] === undefined || answer[field] === null;
  const failure = isEmpty ? failureInAnswer(answer, headers) : undefined;
  if (failure !== undefined) throw failure;
  return answer;
}

function readVector(value: unknown): EmbeddingVector {
  if (isNumbers(value) && value.length > 0) return value;
  throw brokenAnswer("a vector is not one");
}

function usageOf(inputTokens: number | undefined): TokenUsage | undefined {
  if (inputTokens === undefined) return undefined;
  return { inputTokens, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
}
