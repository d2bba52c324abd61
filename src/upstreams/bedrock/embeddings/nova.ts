import { brokenAnswer } from "../../../domain/errors/upstream-failure.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../../../domain/chat/embedding.ts";
import type { VectorAnswer } from "../../adapter.ts";
import { listOf, objectOf } from "../../shared/json-fields.ts";
import { unsupported } from "../failures/refusal.ts";
import type { InputType } from "../settings.ts";
import { parseAnswer, resultOf } from "./answers.ts";
import { inputsOf, type ReadInput } from "./inputs.ts";
import {
  inputTypeOf,
  refuseOtherDimensions,
  type EmbeddingWire,
  type InputSettings,
} from "./wire.ts";

/** Nova multimodal embeddings: one text or one image. Field names as in the provider's schema. */
export const nova: EmbeddingWire = {
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
  decode,
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

function decode(whole: VectorAnswer): EmbeddingResult {
  const items = listOf(parseAnswer(whole, "embeddings")["embeddings"]);
  if (items === undefined) throw brokenAnswer("the answer has no vectors");
  return resultOf(
    items.map((item) => objectOf(item)?.["embedding"]),
    whole,
  );
}
