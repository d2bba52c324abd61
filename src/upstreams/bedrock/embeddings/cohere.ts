import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../../../domain/chat/embedding.ts";
import type { VectorAnswer } from "../../adapter.ts";
import { isObject, listOf } from "../../shared/json-fields.ts";
import { unsupported } from "../failures/refusal.ts";
import { parseAnswer, resultOf } from "./answers.ts";
import { hasImage, inputsOf, textsOf, type ReadImage, type ReadPart } from "./inputs.ts";
import {
  inputTypeOf,
  refuseOtherDimensions,
  type EmbeddingWire,
  type InputSettings,
} from "./wire.ts";

/** The provider's limit for texts, and for inputs of version 4. */
const mostInputs = 96;
const mostImageBytes = 5_000_000;

/** Cohere embed v3: texts, or one image a request. */
export const cohereV3: EmbeddingWire = {
  batchLimit: ({ inputs }) => (inputs.some(hasImage) ? 1 : mostInputs),
  takesImages: true,
  encode(request, settings) {
    refuseOtherDimensions(request, [1024]);
    const truncate = { none: "NONE", start: "START", end: "END" }[settings.truncate];
    const fields = request.inputs.some(hasImage)
      ? imageFields(request)
      : { ...textFields(request, settings), truncate };
    return JSON.stringify({ ...fields, embedding_types: ["float"] });
  },
  decode,
};

/** Cohere embed v4: texts, or inputs of texts and images. */
export const cohereV4: EmbeddingWire = {
  batchLimit: () => mostInputs,
  takesImages: true,
  encode(request, settings) {
    refuseOtherDimensions(request, [256, 512, 1024, 1536]);
    const truncate = { none: "NONE", start: "LEFT", end: "RIGHT" }[settings.truncate];
    const isMixed = request.inputs.some(hasImage);
    return JSON.stringify({
      ...(isMixed ? mixedFields(request, settings) : textFields(request, settings)),
      embedding_types: ["float"],
      truncate,
      output_dimension: request.dimensions,
    });
  },
  decode,
};

function textFields(request: EmbeddingRequest, settings: InputSettings): object {
  return { texts: textsOf(request), input_type: inputTypeOf(request, settings) };
}

/** Version 3 has its own input type for images. */
function imageFields(request: EmbeddingRequest): object {
  const [input] = inputsOf(request, { formats: ["png", "jpeg"], maxBytes: mostImageBytes });
  const [image] = input?.images ?? [];
  if (image === undefined || input?.parts.length !== 1) {
    throw unsupported("input", "This model accepts either texts or one image per input, not both.");
  }
  return { images: [dataUrlOf(image)], input_type: "image" };
}

function mixedFields(request: EmbeddingRequest, settings: InputSettings): object {
  const inputs = inputsOf(request, {
    formats: ["png", "jpeg", "webp", "gif"],
    maxBytes: mostImageBytes,
  });
  return {
    inputs: inputs.map(({ parts }) => ({ content: parts.map(encodePart) })),
    input_type: inputTypeOf(request, settings),
  };
}

/** This provider expects the address itself; Cohere's own API has an object around it. */
function encodePart(part: ReadPart): object {
  return "text" in part
    ? { type: "text", text: part.text }
    : { type: "image_url", image_url: dataUrlOf(part) };
}

function dataUrlOf({ format, base64 }: ReadImage): string {
  return `data:image/${format};base64,${base64}`;
}

function decode(whole: VectorAnswer): EmbeddingResult {
  const { embeddings } = parseAnswer(whole, "embeddings");
  // A list, or lists by type, depending on the version and the request.
  const vectors = listOf(isObject(embeddings) ? embeddings["float"] : embeddings);
  if (vectors === undefined) throw brokenAnswer("the answer has no vectors");
  return resultOf(vectors, whole);
}
