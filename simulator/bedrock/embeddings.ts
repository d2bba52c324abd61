import { countTokens } from "../answer/prompt.ts";
import { hashText, textVector } from "../answer/random.ts";
import {
  isList,
  isRecord,
  type JsonRecord,
  listOf,
  numberOf,
  recordOf,
  stringOf,
} from "../json.ts";
import { type BedrockError, invalid } from "./errors.ts";

const maxInputTokens = 8192;
const titanText: Rule = { type: "String", length: [1, 50_000], isNameless: true };
/** The length of vectors that are not normalised. */
const plainLength = 4;

const titan2: Rule = {
  keys: {
    "inputText!": titanText,
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
  checkBody(body, { keys: { "inputText!": titanText } });
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
const titanImages = { formats: ["png", "jpeg"], maxBytes: 25_000_000 };
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
  const picture =
    inputImage === undefined ? "" : readImage(inputImage, "#/inputImage", titanImages);
  const promptTokens = countTokens(words);
  checkTokens(promptTokens, maxTokensWithImage);
  const length = numberOf(recordOf(embeddingConfig)["outputEmbeddingLength"]) ?? 1024;
  const embedding = Array.from(textVector(`${words} ${picture}`, length));
  return { promptTokens, answer: { embedding, inputTextTokenCount: promptTokens } };
}

const novaImages = { formats: ["png", "jpeg", "gif", "webp"], maxBytes: 25_000_000 };
const novaText: Rule = {
  type: "JSONObject",
  keys: {
    "truncationMode!": { values: ["START", "END", "NONE"] },
    "value!": { type: "String", length: [1, 50_000] },
  },
};
const novaImage: Rule = {
  type: "JSONObject",
  keys: {
    "format!": { values: novaImages.formats },
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
        text: novaText,
        image: novaImage,
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

interface NovaContent {
  readonly content: string;
  readonly promptTokens: number;
}

function readText({ truncationMode, value }: JsonRecord): NovaContent {
  const content = stringOf(value);
  const count = countTokens(content);
  if (truncationMode === "NONE") checkTokens(count, maxInputTokens);
  return { content, promptTokens: Math.min(count, maxInputTokens) };
}

function readPicture({ format, source }: JsonRecord): NovaContent {
  const content = readImage(recordOf(source)["bytes"], "#/image/source/bytes", novaImages);
  if (!content.startsWith(`${stringOf(format)} `)) {
    throw malformed("#/image/format: is not the image's");
  }
  return { content, promptTokens: tokensPerImage };
}

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
interface CohereContent {
  readonly text: string;
  readonly tokens: number;
}

function readContents(
  { images, inputs, texts }: JsonRecord,
  version: 3 | 4,
): readonly CohereContent[] {
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

function readPart({ type, text, image_url: url }: JsonRecord, at: string): CohereContent {
  if (type === "image_url") {
    return { text: readDataUrl(url, `${at}/image_url`, imageRules), tokens: tokensPerImage };
  }
  checkBody(type, { values: ["text"] }, `${at}/type`);
  checkBody(text, { type: "String", length: [1, Number.POSITIVE_INFINITY] }, `${at}/text`);
  return { text: stringOf(text), tokens: countTokens(stringOf(text)) };
}

/** The result of an InvokeModel call. */
export interface EmbeddingResult {
  readonly promptTokens: number;
  /** The body of the answer. */
  readonly answer: JsonRecord;
}

/** The rule for a part of InvokeModel's body, which differs by model. */
export interface Rule {
  readonly type?: "String" | "Boolean" | "Number" | "JSONArray" | "JSONObject";
  readonly values?: readonly unknown[];
  readonly range?: readonly [number, number];
  /** Of lists, and of texts in UTF-16 units, as the provider's validator counts. */
  readonly length?: readonly [number, number];
  readonly items?: Rule;
  /** Names that end in `!` are required; unknown names are refused. */
  readonly keys?: Readonly<Record<string, Rule>>;
  /** Errors about its length omit its path. */
  readonly isNameless?: boolean;
}

/** Throws `BedrockError` with the texts of the models' validator. */
export function checkBody(value: unknown, rule: Rule, at = "#"): void {
  const { type, values, length, range, items, isNameless } = rule;
  if (values?.includes(value) === false) {
    throw malformed(`${at}: ${String(value)} is not a valid enum value`);
  }
  if (type !== undefined && typeOf(value) !== type) {
    throw malformed(`${at}: expected type: ${type}`);
  }
  if (typeof value === "number" && range !== undefined) {
    const [lowest, highest] = range;
    if (value < lowest) throw malformed(`${at}: ${value} is not greater or equal to ${lowest}`);
    if (value > highest) throw malformed(`${at}: ${value} is not less or equal to ${highest}`);
  }
  if ((typeof value === "string" || isList(value)) && length !== undefined) {
    const [lowest, highest] = length;
    const { length: size } = value;
    const [least, most, found] = isList(value)
      ? (["minimum item count", "maximum item count", "found"] as const)
      : (["minLength", "maxLength", "actual"] as const);
    const place = isNameless === true ? "" : `${at}: `;
    if (size < lowest) throw malformed(`${place}expected ${least}: ${lowest}, ${found}: ${size}`);
    if (size > highest) throw malformed(`${place}expected ${most}: ${highest}, ${found}: ${size}`);
  }
  if (isList(value) && items !== undefined) {
    for (const [index, item] of value.entries()) checkBody(item, items, `${at}/${index}`);
  }
  if (isRecord(value) && rule.keys !== undefined) checkKeys(value, rule.keys, at);
}

function checkKeys(value: JsonRecord, keys: Readonly<Record<string, Rule>>, at: string): void {
  const known = Object.keys(keys).map((key) => key.replace("!", ""));
  const missing = known.find((key) => `${key}!` in keys && value[key] === undefined);
  if (missing !== undefined) throw malformed(`#: required key [${missing}] not found`);
  const extra = Object.keys(value).find((key) => !known.includes(key));
  if (extra !== undefined) throw malformed(`#: extraneous key [${extra}] is not permitted`);
  for (const [key, rule] of Object.entries(keys)) {
    const name = key.replace("!", "");
    if (value[name] !== undefined) checkBody(value[name], rule, `${at}/${name}`);
  }
}

function typeOf(value: unknown): string {
  if (isList(value)) return "JSONArray";
  if (isRecord(value)) return "JSONObject";
  const name = typeof value;
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function checkTokens(count: number, limit: number): void {
  if (count <= limit) return;
  throw invalid(
    `400 Bad Request: Too many input tokens. Max input tokens: ${limit}, request input token ` +
      `count: ${count}`,
  );
}

export function malformed(detail: string): BedrockError {
  return invalid(`Malformed input request: ${detail}, please reformat your input and try again.`);
}

/** The tokens of every image: those of one of 500 by 500 pixels. */
const tokensPerImage = 1_610;

interface ImageRules {
  readonly formats: readonly string[];
  readonly maxBytes: number;
}

/** Checks an image in base64 and returns its format and hash as a text. Throws `BedrockError`. */
function readImage(base64: unknown, at: string, rules: ImageRules): string {
  if (typeof base64 !== "string") throw malformed(`${at}: expected type: String`);
  const isBase64 = base64.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(base64);
  if (!isBase64) throw malformed(`${at}: the image is not valid base64`);
  const bytes = Buffer.from(base64, "base64");
  const format = formats.find(([, start]) => bytes.subarray(0, start.length).equals(start))?.[0];
  if (format === undefined || !rules.formats.includes(format)) {
    throw malformed(`${at}: the image is not in a supported format`);
  }
  if (bytes.length > rules.maxBytes) {
    throw malformed(`${at}: the image is larger than ${rules.maxBytes} bytes`);
  }
  return `${format} ${hashText(base64)}`;
}

/** Like `readImage`, for a data URL, whose media type must match its bytes. */
function readDataUrl(url: unknown, at: string, rules: ImageRules): string {
  const [, type = "", base64 = ""] =
    (typeof url === "string" && /^data:image\/(\w+);base64,(.*)$/s.exec(url)) || [];
  if (base64 === "") throw malformed(`${at}: expected a data URI of an image`);
  const image = readImage(base64, at, rules);
  if (!image.startsWith(`${type} `)) throw malformed(`${at}: the image is not of type ${type}`);
  return image;
}

const formats: readonly (readonly [string, Buffer])[] = [
  ["png", Buffer.from([0x89, 0x50, 0x4e, 0x47])],
  ["jpeg", Buffer.from([0xff, 0xd8, 0xff])],
  ["gif", Buffer.from("GIF8")],
  ["webp", Buffer.from("RIFF")],
];
