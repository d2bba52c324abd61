import { countTokens } from "../../answer/tokenizer.ts";
import { textVector } from "../../embedding/text-vector.ts";
import { isRecord, type JsonRecord } from "../../read-json.ts";
import { readImage, tokensPerImage } from "./image.ts";
import {
  checkKeys,
  checkLength,
  malformed,
  readChoice,
  tooManyTokens,
  type EmbeddingRequest,
} from "./request.ts";

const mostTokens = 8192;
const mostCharacters = 50_000;
const images = { formats: ["png", "jpeg", "gif", "webp"], maxBytes: 25_000_000 };
const purposes = [
  "GENERIC_INDEX",
  "GENERIC_RETRIEVAL",
  "TEXT_RETRIEVAL",
  "IMAGE_RETRIEVAL",
  "VIDEO_RETRIEVAL",
  "DOCUMENT_RETRIEVAL",
  "AUDIO_RETRIEVAL",
  "CLASSIFICATION",
  "CLUSTERING",
];

/** Nova multimodal embeddings, of one text or one image. Throws `BedrockError`. */
export function readNovaEmbedding(body: JsonRecord): EmbeddingRequest {
  checkKeys(body, ["taskType", "singleEmbeddingParams"], ["schemaVersion"]);
  readChoice(body, "schemaVersion", ["nova-multimodal-embed-v1"]);
  readChoice(body, "taskType", ["SINGLE_EMBEDDING"]);
  const params = body["singleEmbeddingParams"];
  if (!isRecord(params)) throw malformed("#/singleEmbeddingParams: expected type: JSONObject");
  checkKeys(params, ["embeddingPurpose"], ["embeddingDimension", "text", "image"]);
  readChoice(params, "embeddingPurpose", purposes);
  const dimensions = readChoice(params, "embeddingDimension", [256, 384, 1024, 3072]) ?? 3072;
  const { text, image } = params;
  if ((text === undefined) === (image === undefined)) {
    throw malformed("#/singleEmbeddingParams: exactly one of [text, image] is required");
  }
  const { content, promptTokens } = image === undefined ? readText(text) : readPicture(image);
  const embeddingType = image === undefined ? "TEXT" : "IMAGE";
  const embedding = Array.from(textVector(content, dimensions));
  return { promptTokens, answer: { embeddings: [{ embeddingType, embedding }] } };
}

interface Content {
  readonly content: string;
  readonly promptTokens: number;
}

function readText(text: unknown): Content {
  if (!isRecord(text)) throw malformed("#/text: expected type: JSONObject");
  checkKeys(text, ["truncationMode", "value"], []);
  const mode = readChoice(text, "truncationMode", ["START", "END", "NONE"]);
  const { value } = text;
  if (typeof value !== "string") throw malformed("#/text/value: expected type: String");
  checkLength(value, "#/text/value: ", mostCharacters);
  const count = countTokens(value);
  if (count > mostTokens && mode === "NONE") throw tooManyTokens(mostTokens, count);
  return { content: value, promptTokens: Math.min(count, mostTokens) };
}

function readPicture(image: unknown): Content {
  if (!isRecord(image)) throw malformed("#/image: expected type: JSONObject");
  checkKeys(image, ["format", "source"], ["detailLevel"]);
  const format = readChoice(image, "format", images.formats);
  const { source } = image;
  if (!isRecord(source)) throw malformed("#/image/source: expected type: JSONObject");
  checkKeys(source, ["bytes"], []);
  const content = readImage(source["bytes"], "#/image/source/bytes", images);
  if (!content.startsWith(`${format} `)) throw malformed("#/image/format: is not the image's");
  return { content, promptTokens: tokensPerImage };
}
