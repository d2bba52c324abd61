import { countTokens } from "../../answer/tokenizer.ts";
import { textVector } from "../../embedding/text-vector.ts";
import { isRecord, type JsonRecord } from "../../read-json.ts";
import { readImage } from "./image.ts";
import {
  checkKeys,
  checkLength,
  malformed,
  readChoice,
  readChoices,
  tooManyTokens,
  type EmbeddingRequest,
} from "./request.ts";

const mostTokens = 8192;
const mostCharacters = 50_000;
/** How long vectors are that were not to be normalised. */
const plainLength = 4;

/** Titan text embeddings, version 2: one text a call. Throws `BedrockError`. */
export function readTitanEmbedding(body: JsonRecord): EmbeddingRequest {
  checkKeys(body, ["inputText"], ["dimensions", "normalize", "embeddingTypes"]);
  const { inputText, normalize = true } = body;
  if (typeof inputText !== "string") throw malformed("#/inputText: expected type: String");
  if (typeof normalize !== "boolean") throw malformed("#/normalize: expected type: Boolean");
  checkLength(inputText, "", mostCharacters);
  const dimensions = readChoice(body, "dimensions", [256, 512, 1024]) ?? 1024;
  const types = readChoices(body, "embeddingTypes", ["float", "binary"]) ?? ["float"];
  const promptTokens = countTokens(inputText);
  if (promptTokens > mostTokens) throw tooManyTokens(mostTokens, promptTokens);
  const unit = Array.from(textVector(inputText, dimensions));
  const float = normalize ? unit : unit.map((value) => value * plainLength);
  const binary = unit.map((value) => (value > 0 ? 1 : 0));
  const isFloat = types.includes("float");
  const answer: JsonRecord = {
    ...(isFloat ? { embedding: float } : {}),
    embeddingsByType: {
      ...(types.includes("binary") ? { binary } : {}),
      ...(isFloat ? { float } : {}),
    },
    inputTextTokenCount: promptTokens,
  };
  return { promptTokens, answer };
}

/** Titan text embeddings G1: one text a call, and vectors of one length. Throws `BedrockError`. */
export function readTitanEmbeddingV1(body: JsonRecord): EmbeddingRequest {
  checkKeys(body, ["inputText"], []);
  const { inputText } = body;
  if (typeof inputText !== "string") throw malformed("#/inputText: expected type: String");
  checkLength(inputText, "", mostCharacters);
  const promptTokens = countTokens(inputText);
  if (promptTokens > mostTokens) throw tooManyTokens(mostTokens, promptTokens);
  const embedding = Array.from(textVector(inputText, 1536));
  return { promptTokens, answer: { embedding, inputTextTokenCount: promptTokens } };
}

const mostTokensBesideImage = 256;
const images = { formats: ["png", "jpeg"], maxBytes: 25_000_000 };

/** Titan multimodal embeddings G1: a text, an image, or the mean of both. Throws `BedrockError`. */
export function readTitanImageEmbedding(body: JsonRecord): EmbeddingRequest {
  checkKeys(body, [], ["inputText", "inputImage", "embeddingConfig"]);
  const { inputText = "", inputImage, embeddingConfig = {} } = body;
  if (typeof inputText !== "string") throw malformed("#/inputText: expected type: String");
  if (!isRecord(embeddingConfig)) throw malformed("#/embeddingConfig: expected type: JSONObject");
  checkKeys(embeddingConfig, [], ["outputEmbeddingLength"]);
  const length = readChoice(embeddingConfig, "outputEmbeddingLength", [256, 384, 1024]) ?? 1024;
  if (inputText === "" && inputImage === undefined) {
    throw malformed("#: at least one of [inputText, inputImage] is required");
  }
  const picture = inputImage === undefined ? "" : readImage(inputImage, "#/inputImage", images);
  const promptTokens = inputText === "" ? 0 : countTokens(inputText);
  if (promptTokens > mostTokensBesideImage) {
    throw tooManyTokens(mostTokensBesideImage, promptTokens);
  }
  const embedding = Array.from(textVector(`${inputText} ${picture}`, length));
  return { promptTokens, answer: { embedding, inputTextTokenCount: promptTokens } };
}
