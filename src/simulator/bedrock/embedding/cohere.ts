import { hashText } from "../../answer/random.ts";
import { countTokens } from "../../answer/tokenizer.ts";
import { textVector } from "../../embedding/text-vector.ts";
import { listOf, numberOf, recordOf, stringOf, type JsonRecord } from "../../read-json.ts";
import {
  checkBody,
  checkTokens,
  malformed,
  type EmbeddingResult,
  type Rule,
} from "./check-body.ts";
import { readDataUrl, tokensPerImage } from "./image.ts";

const version4MaxTokens = 128_000;
const inputTypes = ["search_document", "search_query", "classification", "clustering"];
const imageRules = { formats: ["png", "jpeg", "webp", "gif"], maxBytes: 5_000_000 };

const shared: Readonly<Record<string, Rule>> = {
  embedding_types: { type: "JSONArray", items: { values: ["float"] } },
};
const rules: Readonly<Record<3 | 4, Rule>> = {
  3: {
    keys: {
      ...shared,
      "input_type!": { values: [...inputTypes, "image"] },
      texts: texts(2048),
      images: { type: "JSONArray", length: [1, 1] },
      truncate: { values: ["NONE", "START", "END"] },
    },
  },
  4: {
    keys: {
      ...shared,
      "input_type!": { values: inputTypes },
      texts: texts(Number.POSITIVE_INFINITY),
      images: { type: "JSONArray", length: [1, 96] },
      inputs: {
        type: "JSONArray",
        length: [1, 96],
        items: {
          type: "JSONObject",
          keys: { "content!": { type: "JSONArray", length: [1, Number.POSITIVE_INFINITY] } },
        },
      },
      truncate: { values: ["NONE", "LEFT", "RIGHT"] },
      output_dimension: { values: [256, 512, 1024, 1536] },
      max_tokens: {},
    },
  },
};

function texts(longest: number): Rule {
  return { type: "JSONArray", length: [1, 96], items: { type: "String", length: [1, longest] } };
}

/** Cohere embeddings: many inputs a call, with a purpose; floats only. Throws `BedrockError`. */
export function readCohereEmbedding(body: JsonRecord, version: 3 | 4): EmbeddingResult {
  checkBody(body, rules[version]);
  const given = ["texts", "images", "inputs"].filter((key) => body[key] !== undefined);
  if (given.length === 0) throw malformed("#: required key [texts] not found");
  if (given.length > 1) throw malformed(`#: only one of [${given.join(", ")}] may be given`);
  if (version === 3 && (body["input_type"] === "image") !== (body["images"] !== undefined)) {
    throw malformed("#/input_type: image is for images alone");
  }
  const read = readContents(body, version);
  const promptTokens = read.reduce((total, { tokens }) => total + tokens, 0);
  if (version === 4 && (body["truncate"] ?? "NONE") === "NONE") {
    checkTokens(promptTokens, version4MaxTokens);
  }
  const contents = read.map(({ text }) => text);
  const size = numberOf(body["output_dimension"]) ?? (version === 3 ? 1024 : 1536);
  const vectors = contents.map((text) => Array.from(textVector(text, size)));
  const isByType = version === 4 || body["embedding_types"] !== undefined;
  const answer: JsonRecord = {
    embeddings: isByType ? { float: vectors } : vectors,
    id: hashText(JSON.stringify(contents)).toString(16).padStart(8, "0"),
    response_type: isByType ? "embeddings_by_type" : "embeddings_floats",
    ...(body["texts"] === undefined ? {} : { texts: contents }),
  };
  return { promptTokens, answer };
}

/** The input of one vector; images appear in the text as their hashes. */
interface Content {
  readonly text: string;
  readonly tokens: number;
}

function readContents({ images, inputs, texts }: JsonRecord, version: 3 | 4): readonly Content[] {
  const formats = version === 3 ? ["png", "jpeg"] : imageRules.formats;
  if (images !== undefined) {
    return listOf(images).map((url, index) => ({
      text: readDataUrl(url, `#/images/${index}`, { ...imageRules, formats }),
      tokens: tokensPerImage,
    }));
  }
  if (inputs === undefined) {
    return listOf(texts).map((text) => ({
      text: stringOf(text),
      tokens: countTokens(stringOf(text)),
    }));
  }
  return listOf(inputs).map((input, index) => {
    const parts = listOf(recordOf(input)["content"]).map((part, place) =>
      readPart(recordOf(part), `#/inputs/${index}/content/${place}`),
    );
    const tokens = parts.reduce((total, part) => total + part.tokens, 0);
    return { text: parts.map(({ text }) => text).join(" "), tokens };
  });
}

function readPart({ type, text, image_url: url }: JsonRecord, at: string): Content {
  if (type === "image_url") {
    return { text: readDataUrl(url, `${at}/image_url`, imageRules), tokens: tokensPerImage };
  }
  checkBody(type, { values: ["text"] }, `${at}/type`);
  checkBody(text, { type: "String", length: [1, Number.POSITIVE_INFINITY] }, `${at}/text`);
  return { text: stringOf(text), tokens: countTokens(stringOf(text)) };
}
