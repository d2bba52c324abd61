import type { EmbeddingFamily } from "../models/facts.ts";
import {
  type EmbeddingWire,
  hasImage,
  type InputSettings,
  inputsOf,
  inputTypeOf,
  invokeAnswer,
  type ReadInput,
  type ReadPart,
  refuseOtherDimensions,
  resultOf,
  textsOf,
} from "./wire.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../../../domain/chat/embedding.ts";
import type { VectorAnswer } from "../../adapter.ts";
import { brokenAnswer, unsupported } from "../../../domain/errors/upstream-failure.ts";
import { isObject, listOf, objectOf } from "../../../domain/json-fields.ts";
import type { ReadImage } from "../encode/content.ts";
import type { InputType } from "../config/target-sections.ts";

/** Titan text embeddings. The vectors of the first generation have one length. */
function titanText(generation: 1 | 2): EmbeddingWire {
  return {
    batchLimit: () => 1,
    takesImages: false,
    encode(request) {
      refuseOtherDimensions(request, generation === 1 ? [1536] : [256, 512, 1024]);
      const [inputText] = textsOf(request);
      const { dimensions } = request;
      return JSON.stringify({
        inputText,
        ...(generation === 2 && { dimensions, normalize: true }),
      });
    },
    decode: decodeTitan,
  };
}

/** Titan multimodal embeddings G1: a text, an image, or the mean of both. */
const titanImage: EmbeddingWire = {
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
  decode: decodeTitan,
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

function decodeTitan(whole: VectorAnswer): EmbeddingResult {
  const answer = invokeAnswer(whole, "embedding");
  return resultOf([answer["embedding"]], whole, answer["inputTextTokenCount"]);
}

/** Nova multimodal embeddings: one text or one image. Field names as in the provider's schema. */
const nova: EmbeddingWire = {
  batchLimit: () => 1,
  takesImages: true,
  encode(request, settings) {
    refuseOtherDimensions(request, [256, 384, 1024, 3072]);
    return JSON.stringify({
      schemaVersion: "nova-multimodal-embed-v1",
      taskType: "SINGLE_EMBEDDING",
      singleEmbeddingParams: {
        embeddingPurpose: purposes[inputTypeOf(request, settings)],
        embeddingDimension: request.dimensions ?? 3072,
        ...novaInput(request, settings),
      },
    });
  },
  decode: decodeNova,
};

/** What Cohere calls input types. */
const purposes: Readonly<Record<InputType, string>> = {
  search_document: "GENERIC_INDEX",
  search_query: "GENERIC_RETRIEVAL",
  classification: "CLASSIFICATION",
  clustering: "CLUSTERING",
};

/** The provider accepts 25 MB within a request. */
const novaImages = { formats: ["png", "jpeg", "gif", "webp"], maxBytes: 25_000_000 } as const;

const truncationModes = { none: "NONE", start: "START", end: "END" } as const;

function novaInput(request: EmbeddingRequest, { truncate }: InputSettings): object {
  const [input] = inputsOf(request, novaImages);
  const { text, images } = input ?? noInput;
  const [image] = images;
  if (image === undefined) {
    return { text: { truncationMode: truncationModes[truncate], value: text } };
  }
  if (images.length > 1 || text !== "") {
    throw unsupported("input", "This model accepts one text or one image per input, not several.");
  }
  return { image: { format: image.format, source: { bytes: image.base64 } } };
}

const noInput: ReadInput = { text: "", images: [], parts: [] };

function decodeNova(whole: VectorAnswer): EmbeddingResult {
  const items = listOf(invokeAnswer(whole, "embeddings")["embeddings"]);
  if (items === undefined) throw brokenAnswer("the answer has no vectors");
  return resultOf(
    items.map((item) => objectOf(item)?.["embedding"]),
    whole,
  );
}

/** The provider's limit for texts, and for inputs of version 4. */
const mostInputs = 96;
const mostImageBytes = 5_000_000;

/** Cohere embed v3: texts, or one image a request. */
const cohereV3: EmbeddingWire = {
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
  decode: decodeCohere,
};

/** Cohere embed v4: texts, or inputs of texts and images. */
const cohereV4: EmbeddingWire = {
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
  decode: decodeCohere,
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

function decodeCohere(whole: VectorAnswer): EmbeddingResult {
  const { embeddings } = invokeAnswer(whole, "embeddings");
  // A list, or lists by type, depending on the version and the request.
  const vectors = listOf(isObject(embeddings) ? embeddings["float"] : embeddings);
  if (vectors === undefined) throw brokenAnswer("the answer has no vectors");
  return resultOf(vectors, whole);
}

export const embeddingWires: Readonly<Record<EmbeddingFamily, EmbeddingWire>> = {
  "titan-embed-v1": titanText(1),
  "titan-embed-v2": titanText(2),
  "titan-embed-image": titanImage,
  "nova-embed": nova,
  "cohere-embed-v3": cohereV3,
  "cohere-embed-v4": cohereV4,
};
