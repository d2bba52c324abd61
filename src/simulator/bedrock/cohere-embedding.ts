import { hashText } from "../answer/random.ts";
import { countTokens } from "../answer/tokenizer.ts";
import { textVector } from "../embedding/text-vector.ts";
import { isList, type JsonRecord } from "../read-json.ts";
import {
  checkKeys,
  checkLength,
  malformed,
  readChoice,
  readChoices,
  tooManyTokens,
  type EmbeddingRequest,
} from "./embedding-request.ts";

const mostTexts = 96;
const mostCharacters = 2048;
const mostTokensOfVersion4 = 128_000;
const inputTypes = ["search_document", "search_query", "classification", "clustering"] as const;
const vectorTypes = ["float", "int8", "uint8", "binary", "ubinary"] as const;

/** Cohere's text embeddings: many texts a call, and the purpose with them. Throws `BedrockError`. */
export function readCohereEmbedding(body: JsonRecord, version: 3 | 4): EmbeddingRequest {
  const optional = ["truncate", "embedding_types", ...(version === 4 ? ["output_dimension"] : [])];
  checkKeys(body, ["texts", "input_type"], optional);
  readChoice(body, "input_type", inputTypes);
  const ends = version === 3 ? ["START", "END"] : ["LEFT", "RIGHT"];
  const truncate = readChoice(body, "truncate", ["NONE", ...ends]) ?? "NONE";
  const types = readChoices(body, "embedding_types", vectorTypes);
  const dimensions = readChoice(body, "output_dimension", [256, 512, 1024, 1536]);
  const texts = readTexts(body["texts"], version);
  const promptTokens = texts.reduce((total, text) => total + countTokens(text), 0);
  if (version === 4 && promptTokens > mostTokensOfVersion4 && truncate === "NONE") {
    throw tooManyTokens(mostTokensOfVersion4, promptTokens);
  }
  const size = dimensions ?? (version === 3 ? 1024 : 1536);
  const vectors = texts.map((text) => Array.from(textVector(text, size)));
  const isByType = version === 4 || types !== undefined;
  const answer: JsonRecord = {
    embeddings: isByType ? byType(vectors, types ?? ["float"]) : vectors,
    id: hashText(JSON.stringify(texts)).toString(16).padStart(8, "0"),
    response_type: isByType ? "embeddings_by_type" : "embeddings_floats",
    texts,
  };
  return { promptTokens, answer };
}

function readTexts(texts: unknown, version: 3 | 4): string[] {
  if (!isList(texts)) throw malformed("#/texts: expected type: JSONArray");
  if (texts.length === 0) throw malformed("#/texts: expected minimum item count: 1, found: 0");
  if (texts.length > mostTexts) {
    throw malformed(`#/texts: expected maximum item count: ${mostTexts}, found: ${texts.length}`);
  }
  return texts.map((text, index) => {
    const at = `#/texts/${index}: `;
    if (typeof text !== "string") throw malformed(`${at}expected type: String`);
    checkLength(text, at, version === 3 ? mostCharacters : Number.POSITIVE_INFINITY);
    return text;
  });
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
