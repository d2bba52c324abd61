import { countTokens } from "../../answer/tokenizer.ts";
import { textVector } from "../../embedding/text-vector.ts";
import { numberOf, recordOf, stringOf, type JsonRecord } from "../../read-json.ts";
import { readImage } from "./image.ts";
import {
  checkBody,
  checkTokens,
  malformed,
  type EmbeddingResult,
  type Rule,
} from "./check-body.ts";

const maxInputTokens = 8192;
const text: Rule = { type: "String", length: [1, 50_000], isNameless: true };
/** The length of vectors that are not normalised. */
const plainLength = 4;

const titan2: Rule = {
  keys: {
    "inputText!": text,
    normalize: { type: "Boolean" },
    dimensions: { values: [256, 512, 1024] },
    embeddingTypes: { type: "JSONArray", items: { values: ["float"] } },
  },
};

/** Titan text embeddings, version 2: one text a call, floats only. Throws `BedrockError`. */
export function readTitanEmbedding(body: JsonRecord): EmbeddingResult {
  checkBody(body, titan2);
  const { unit, promptTokens } = embedded(body, numberOf(body["dimensions"]) ?? 1024);
  const float = body["normalize"] === false ? unit.map((value) => value * plainLength) : unit;
  const answer = {
    embedding: float,
    embeddingsByType: { float },
    inputTextTokenCount: promptTokens,
  };
  return { promptTokens, answer };
}

/** Titan text embeddings G1: one text a call, one vector size. Throws `BedrockError`. */
export function readTitanEmbeddingV1(body: JsonRecord): EmbeddingResult {
  checkBody(body, { keys: { "inputText!": text } });
  const { unit: embedding, promptTokens } = embedded(body, 1536);
  return { promptTokens, answer: { embedding, inputTextTokenCount: promptTokens } };
}

function embedded(body: JsonRecord, dimensions: number) {
  const words = stringOf(body["inputText"]);
  const promptTokens = countTokens(words);
  checkTokens(promptTokens, maxInputTokens);
  return { unit: Array.from(textVector(words, dimensions)), promptTokens };
}

const maxTokensWithImage = 256;
const images = { formats: ["png", "jpeg"], maxBytes: 25_000_000 };
const titanImage: Rule = {
  keys: {
    inputText: { type: "String" },
    inputImage: {},
    embeddingConfig: {
      type: "JSONObject",
      keys: { outputEmbeddingLength: { values: [256, 384, 1024] } },
    },
  },
};

/** Titan multimodal embeddings G1: a text, an image, or the mean of both. Throws `BedrockError`. */
export function readTitanImageEmbedding(body: JsonRecord): EmbeddingResult {
  checkBody(body, titanImage);
  const { inputImage, embeddingConfig } = body;
  const words = stringOf(body["inputText"]);
  if (words === "" && inputImage === undefined) {
    throw malformed("#: at least one of [inputText, inputImage] is required");
  }
  const picture = inputImage === undefined ? "" : readImage(inputImage, "#/inputImage", images);
  const promptTokens = countTokens(words);
  checkTokens(promptTokens, maxTokensWithImage);
  const length = numberOf(recordOf(embeddingConfig)["outputEmbeddingLength"]) ?? 1024;
  const embedding = Array.from(textVector(`${words} ${picture}`, length));
  return { promptTokens, answer: { embedding, inputTextTokenCount: promptTokens } };
}
