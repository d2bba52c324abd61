import {
  type EmbeddingInput,
  type EmbeddingPart,
  type EmbeddingRequest,
  type EmbeddingResult,
  isContent,
  isImageText,
} from "../../../domain/chat/embedding.ts";
import type { VectorAnswer } from "../../adapter.ts";
import type { BedrockModelSettings } from "../settings.ts";
import { type InputType, inputTypes } from "../config/target-sections.ts";
import { type ImageRules, type ReadImage, readImage } from "../encode/content.ts";
import {
  brokenAnswer,
  invalidRequest,
  unsupported,
} from "../../../domain/errors/upstream-failure.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { countOf, type JsonObject, parseObject, vectorAt } from "../../../domain/json-fields.ts";
import { failureInAnswer } from "../read-failure.ts";

/** How one family of embedding models is called through InvokeModel. */
export interface EmbeddingWire {
  /** Most inputs of one request. */
  batchLimit(request: EmbeddingRequest): number;
  readonly takesImages: boolean;
  encode(request: EmbeddingRequest, settings: InputSettings): string;
  decode(answer: VectorAnswer): EmbeddingResult;
}

export type InputSettings = Pick<BedrockModelSettings, "inputType" | "truncate">;

/** The purpose of the vectors: the caller's, or else the operator's. */
export function inputTypeOf(request: EmbeddingRequest, settings: InputSettings): InputType {
  const asked = request.inputType;
  if (asked === undefined) return settings.inputType;
  const known = inputTypes.find((type) => type === asked);
  if (known !== undefined) return known;
  throw invalidRequest(
    "input_type",
    `Invalid value: '${asked.slice(0, 64)}'. This model's input types are: ${inputTypes.join(", ")}.`,
  );
}

export function refuseOtherDimensions(request: EmbeddingRequest, known: readonly number[]): void {
  const { dimensions } = request;
  if (dimensions === undefined || known.includes(dimensions)) return;
  const list = known.length === 1 ? `only ${known[0]}` : `one of ${known.join(", ")}`;
  throw unsupported(
    "dimensions",
    `Invalid 'dimensions': ${dimensions}. This model supports ${list}.`,
  );
}

/** The content of one vector, in the form that the provider's models accept. */
export interface ReadInput {
  /** All texts of the input, one on each line; empty without text. */
  readonly text: string;
  readonly images: readonly ReadImage[];
  /** In the caller's order, without empty texts. */
  readonly parts: readonly ReadPart[];
}

export type ReadPart = { readonly text: string } | ReadImage;

/** Texts for a model that accepts only texts. Throws `UpstreamFailure` for images. */
export function textsOf({ inputs }: EmbeddingRequest): readonly string[] {
  return inputs.map((input) => {
    const { text } = readParts(partsOf(input), undefined);
    return text;
  });
}

/** Inputs for a model that also accepts images. Throws `UpstreamFailure` for other images. */
export function inputsOf({ inputs }: EmbeddingRequest, rules: ImageRules): readonly ReadInput[] {
  return inputs.map((input) => readParts(partsOf(input), rules));
}

/** Whether an input has an image, without reading the image. */
export function hasImage(input: EmbeddingInput): boolean {
  if (typeof input === "string") return isImageText(input);
  return isContent(input) && input.content.some(({ type }) => type === "image_url");
}

function partsOf(input: EmbeddingInput): readonly EmbeddingPart[] {
  if (typeof input === "string") {
    if (isImageText(input)) return [{ type: "image_url", image_url: { url: input } }];
    return [{ type: "text", text: input }];
  }
  if (isContent(input)) return input.content;
  throw new Error("token ids must become text before they come here");
}

function readParts(content: readonly EmbeddingPart[], rules: ImageRules | undefined): ReadInput {
  const parts = content.flatMap((part): readonly ReadPart[] => {
    if (part.type === "image_url") {
      if (rules !== undefined) return [readImage(part.image_url.url, rules, "input")];
      throw unsupported("input", "This model embeds only texts: remove the image from 'input'.");
    }
    return part.text === "" ? [] : [{ text: part.text }];
  });
  if (parts.length === 0) throw invalidRequest("input", "An input has only empty texts.");
  return {
    text: parts.flatMap((part) => ("text" in part ? part.text : [])).join("\n"),
    images: parts.flatMap((part) => ("text" in part ? [] : part)),
    parts,
  };
}

/** An object with this field. Throws the failure that it contains instead. */
export function invokeAnswer({ headers, json }: VectorAnswer, field: string): JsonObject {
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
