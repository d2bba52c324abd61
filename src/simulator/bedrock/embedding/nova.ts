import { countTokens } from "../../answer/tokenizer.ts";
import { textVector } from "../../embedding/text-vector.ts";
import { numberOf, recordOf, stringOf, type JsonRecord } from "../../read-json.ts";
import {
  checkBody,
  checkTokens,
  malformed,
  type EmbeddingResult,
  type Rule,
} from "./check-body.ts";
import { readImage, tokensPerImage } from "./image.ts";

const maxInputTokens = 8192;
const images = { formats: ["png", "jpeg", "gif", "webp"], maxBytes: 25_000_000 };
const text: Rule = {
  type: "JSONObject",
  keys: {
    "truncationMode!": { values: ["START", "END", "NONE"] },
    "value!": { type: "String", length: [1, 50_000] },
  },
};
const image: Rule = {
  type: "JSONObject",
  keys: {
    "format!": { values: images.formats },
    "source!": { type: "JSONObject", keys: { "bytes!": {} } },
    detailLevel: {},
  },
};
const purposes =
  "GENERIC_INDEX GENERIC_RETRIEVAL TEXT_RETRIEVAL IMAGE_RETRIEVAL VIDEO_RETRIEVAL " +
  "DOCUMENT_RETRIEVAL AUDIO_RETRIEVAL CLASSIFICATION CLUSTERING";
const nova: Rule = {
  keys: {
    schemaVersion: { values: ["nova-multimodal-embed-v1"] },
    "taskType!": { values: ["SINGLE_EMBEDDING"] },
    "singleEmbeddingParams!": {
      type: "JSONObject",
      keys: {
        "embeddingPurpose!": { values: purposes.split(" ") },
        embeddingDimension: { values: [256, 384, 1024, 3072] },
        text,
        image,
      },
    },
  },
};

/** Nova multimodal embeddings: one text or one image a call. Throws `BedrockError`. */
export function readNovaEmbedding(body: JsonRecord): EmbeddingResult {
  checkBody(body, nova);
  const params = recordOf(body["singleEmbeddingParams"]);
  if ((params["text"] === undefined) === (params["image"] === undefined)) {
    throw malformed("#/singleEmbeddingParams: exactly one of [text, image] is required");
  }
  const isText = params["image"] === undefined;
  const { content, promptTokens } = isText
    ? readText(recordOf(params["text"]))
    : readPicture(recordOf(params["image"]));
  const dimensions = numberOf(params["embeddingDimension"]) ?? 3072;
  const embedding = Array.from(textVector(content, dimensions));
  const embeddingType = isText ? "TEXT" : "IMAGE";
  return { promptTokens, answer: { embeddings: [{ embeddingType, embedding }] } };
}

interface Content {
  readonly content: string;
  readonly promptTokens: number;
}

function readText({ truncationMode, value }: JsonRecord): Content {
  const content = stringOf(value);
  const count = countTokens(content);
  if (truncationMode === "NONE") checkTokens(count, maxInputTokens);
  return { content, promptTokens: Math.min(count, maxInputTokens) };
}

function readPicture({ format, source }: JsonRecord): Content {
  const content = readImage(recordOf(source)["bytes"], "#/image/source/bytes", images);
  if (!content.startsWith(`${stringOf(format)} `)) {
    throw malformed("#/image/format: is not the image's");
  }
  return { content, promptTokens: tokensPerImage };
}
