import { hashText } from "../../answer/random.ts";
import { countTokens } from "../../answer/tokenizer.ts";
import { textVector } from "../../embedding/text-vector.ts";
import { isList, isRecord, type JsonRecord } from "../../read-json.ts";
import { readDataUrl, tokensPerImage } from "./image.ts";
import {
  checkKeys,
  checkLength,
  malformed,
  readChoice,
  readChoices,
  tooManyTokens,
  type EmbeddingRequest,
} from "./request.ts";

const mostTexts = 96;
const mostCharacters = 2048;
const mostTokensOfVersion4 = 128_000;
const inputTypes = ["search_document", "search_query", "classification", "clustering"] as const;
const vectorTypes = ["float", "int8", "uint8", "binary", "ubinary"] as const;

const imageRules = { formats: ["png", "jpeg", "webp", "gif"], maxBytes: 5_000_000 };

/** Cohere's embeddings: many inputs a call, and the purpose with them. Throws `BedrockError`. */
export function readCohereEmbedding(body: JsonRecord, version: 3 | 4): EmbeddingRequest {
  const sources = version === 3 ? ["texts", "images"] : ["texts", "images", "inputs"];
  const given = sources.filter((key) => body[key] !== undefined);
  const dimensional = version === 4 ? ["output_dimension", "max_tokens"] : [];
  const optional = [...sources, "truncate", "embedding_types", ...dimensional];
  checkKeys(body, ["input_type"], optional);
  if (given.length === 0) throw malformed("#: required key [texts] not found");
  if (given.length > 1) throw malformed(`#: only one of [${given.join(", ")}] may be given`);
  readChoice(body, "input_type", [...inputTypes, ...(version === 3 ? ["image"] : [])]);
  if (version === 3 && (body["input_type"] === "image") !== (body["images"] !== undefined)) {
    throw malformed("#/input_type: image is for images alone");
  }
  const ends = version === 3 ? ["START", "END"] : ["LEFT", "RIGHT"];
  const truncate = readChoice(body, "truncate", ["NONE", ...ends]) ?? "NONE";
  const types = readChoices(body, "embedding_types", vectorTypes);
  const dimensions = readChoice(body, "output_dimension", [256, 512, 1024, 1536]);
  const { contents, promptTokens } = readContents(body, version);
  if (version === 4 && promptTokens > mostTokensOfVersion4 && truncate === "NONE") {
    throw tooManyTokens(mostTokensOfVersion4, promptTokens);
  }
  const size = dimensions ?? (version === 3 ? 1024 : 1536);
  const vectors = contents.map((text) => Array.from(textVector(text, size)));
  const isByType = version === 4 || types !== undefined;
  const answer: JsonRecord = {
    embeddings: isByType ? byType(vectors, types ?? ["float"]) : vectors,
    id: hashText(JSON.stringify(contents)).toString(16).padStart(8, "0"),
    response_type: isByType ? "embeddings_by_type" : "embeddings_floats",
    ...(body["texts"] === undefined ? {} : { texts: contents }),
  };
  return { promptTokens, answer };
}

interface Contents {
  /** A text for each vector, which stands for the images in it too. */
  readonly contents: readonly string[];
  readonly promptTokens: number;
}

function readContents(body: JsonRecord, version: 3 | 4): Contents {
  const { images, inputs, texts } = body;
  if (images !== undefined) return readImages(images, version);
  if (inputs !== undefined) return readInputs(inputs);
  const contents = readTexts(texts, version);
  return { contents, promptTokens: sum(contents.map(countTokens)) };
}

function readImages(images: unknown, version: 3 | 4): Contents {
  const list = readList(images, "#/images", version === 3 ? 1 : mostTexts);
  const rules = version === 3 ? { ...imageRules, formats: ["png", "jpeg"] } : imageRules;
  const contents = list.map((url, index) => readDataUrl(url, `#/images/${index}`, rules));
  return { contents, promptTokens: contents.length * tokensPerImage };
}

function readInputs(inputs: unknown): Contents {
  const read = readList(inputs, "#/inputs", mostTexts).map((input, index) => {
    const at = `#/inputs/${index}/content`;
    const content = isRecord(input) ? input["content"] : undefined;
    return readList(content, at, Number.POSITIVE_INFINITY).map((part, place) =>
      readPart(part, `${at}/${place}`),
    );
  });
  return {
    contents: read.map((parts) => parts.map(({ text }) => text).join(" ")),
    promptTokens: sum(read.flat().map(({ tokens }) => tokens)),
  };
}

function readPart(part: unknown, at: string): { readonly text: string; readonly tokens: number } {
  const { type, text, image_url: url } = isRecord(part) ? part : {};
  if (type === "image_url") {
    return { text: readDataUrl(url, `${at}/image_url`, imageRules), tokens: tokensPerImage };
  }
  if (type !== "text") throw malformed(`${at}/type: ${String(type)} is not a valid enum value`);
  if (typeof text !== "string") throw malformed(`${at}/text: expected type: String`);
  checkLength(text, `${at}/text: `, Number.POSITIVE_INFINITY);
  return { text, tokens: countTokens(text) };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function readTexts(texts: unknown, version: 3 | 4): string[] {
  return readList(texts, "#/texts", mostTexts).map((text, index) => {
    const at = `#/texts/${index}: `;
    if (typeof text !== "string") throw malformed(`${at}expected type: String`);
    checkLength(text, at, version === 3 ? mostCharacters : Number.POSITIVE_INFINITY);
    return text;
  });
}

function readList(list: unknown, at: string, most: number): readonly unknown[] {
  if (!isList(list)) throw malformed(`${at}: expected type: JSONArray`);
  if (list.length === 0) throw malformed(`${at}: expected minimum item count: 1, found: 0`);
  if (list.length > most) {
    throw malformed(`${at}: expected maximum item count: ${most}, found: ${list.length}`);
  }
  return list;
}

type VectorType = (typeof vectorTypes)[number];

const conversions: Readonly<Record<VectorType, (vector: readonly number[]) => number[]>> = {
  float: (vector) => [...vector],
  int8: (vector) => vector.map((value) => Math.round(value * 127)),
  uint8: (vector) => vector.map((value) => Math.round(value * 127) + 128),
  binary: (vector) => packedBits(vector).map((byte) => byte - 128),
  ubinary: packedBits,
};

function byType(vectors: readonly number[][], types: readonly VectorType[]): JsonRecord {
  return Object.fromEntries(types.map((type) => [type, vectors.map(conversions[type])]));
}

/** One bit a dimension, the first in the highest place. */
function packedBits(vector: readonly number[]): number[] {
  return Array.from({ length: Math.ceil(vector.length / 8) }, (_, index) =>
    vector
      .slice(index * 8, index * 8 + 8)
      .reduce((byte, value) => byte * 2 + (value > 0 ? 1 : 0), 0),
  );
}
