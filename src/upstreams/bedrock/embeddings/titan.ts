import type { EmbeddingRequest, EmbeddingResult } from "../../../domain/chat/embedding.ts";
import type { VectorAnswer } from "../../adapter.ts";
import { unsupported } from "../failures/refusal.ts";
import { parseAnswer, resultOf } from "./answers.ts";
import { inputsOf, textsOf } from "./inputs.ts";
import { refuseOtherDimensions, type EmbeddingWire } from "./wire.ts";

/** Titan text embeddings G1: the first generation, whose vectors have one length. */
export const titanTextV1: EmbeddingWire = {
  batchLimit: () => 1,
  takesImages: false,
  encode(request) {
    refuseOtherDimensions(request, [1536]);
    const [inputText] = textsOf(request);
    return JSON.stringify({ inputText });
  },
  decode,
};

/** Titan text embeddings v2. */
export const titanTextV2: EmbeddingWire = {
  batchLimit: () => 1,
  takesImages: false,
  encode(request) {
    refuseOtherDimensions(request, [256, 512, 1024]);
    const [inputText] = textsOf(request);
    return JSON.stringify({ inputText, dimensions: request.dimensions, normalize: true });
  },
  decode,
};

/** Titan multimodal embeddings G1: a text, an image, or the mean of both. */
export const titanImage: EmbeddingWire = {
  batchLimit: () => 1,
  takesImages: true,
  encode(request) {
    refuseOtherDimensions(request, [256, 384, 1024]);
    const { dimensions } = request;
    return JSON.stringify({
      ...titanInput(request),
      ...(dimensions !== undefined && { embeddingConfig: { outputEmbeddingLength: dimensions } }),
    });
  },
  decode,
};

/** The provider names no other formats, and a limit of 25 MB. */
const titanImages = { formats: ["png", "jpeg"], maxBytes: 25_000_000 } as const;

function titanInput(request: EmbeddingRequest): object {
  const [input] = inputsOf(request, titanImages);
  const { text = "", images = [] } = input ?? {};
  const [image] = images;
  if (images.length > 1) throw unsupported("input", "This model accepts one image per input.");
  return { inputText: text || undefined, inputImage: image?.base64 };
}

function decode(whole: VectorAnswer): EmbeddingResult {
  const answer = parseAnswer(whole, "embedding");
  return resultOf([answer["embedding"]], whole, answer["inputTextTokenCount"]);
}
