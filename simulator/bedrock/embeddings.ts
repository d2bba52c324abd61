import { countTokens } from "../answer/prompt.ts";
import { hashText, textVector } from "../answer/random.ts";
import { type JsonRecord, listOf, numberOf, recordOf, stringOf } from "../json.ts";
import { type BedrockError, invalid } from "./errors.ts";
import {
  anyText,
  anything,
  checkShape,
  choice,
  flag,
  list,
  type Shape,
  someText,
  structure,
} from "./shapes.ts";

const maxInputTokens = 8192;
const titanText: Shape = { kind: "string", length: [1, 50_000] };

const titan2 = structure({
  "inputText!": titanText,
  normalize: flag,
  dimensions: oneOf(256, 512, 1024),
  embeddingTypes: list(choice("float")),
});

/** Titan text embeddings, version 2: one text a call, floats only. Throws `BedrockError`. */
export function readTitanEmbedding(body: JsonRecord): EmbeddingResult {
  checkShape(body, titan2);
  const { unit: float, promptTokens } = embedded(body, numberOf(body["dimensions"]) ?? 1024);
  const answer = {
    embedding: float,
    embeddingsByType: { float },
    inputTextTokenCount: promptTokens,
  };
  return { promptTokens, answer };
}

/** Titan text embeddings G1: one text a call, one vector size. Throws `BedrockError`. */
export function readTitanEmbeddingV1(body: JsonRecord): EmbeddingResult {
  checkShape(body, structure({ "inputText!": titanText }));
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
const titanImage = structure({
  inputText: anyText,
  inputImage: anything,
  embeddingConfig: structure({ outputEmbeddingLength: oneOf(256, 384, 1024) }),
});

/** Titan multimodal embeddings G1: a text, an image, or the mean of both. Throws `BedrockError`. */
export function readTitanImageEmbedding(body: JsonRecord): EmbeddingResult {
  checkShape(body, titanImage);
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
const novaText = structure({
  "truncationMode!": choice("START", "END", "NONE"),
  "value!": titanText,
});
const novaImage = structure({
  "format!": choice(...novaImages.formats),
  "source!": structure({ "bytes!": anything }),
  detailLevel: anything,
});
const purposes =
  "GENERIC_INDEX GENERIC_RETRIEVAL TEXT_RETRIEVAL IMAGE_RETRIEVAL VIDEO_RETRIEVAL " +
  "DOCUMENT_RETRIEVAL AUDIO_RETRIEVAL CLASSIFICATION CLUSTERING";
const nova = structure({
  schemaVersion: choice("nova-multimodal-embed-v1"),
  "taskType!": choice("SINGLE_EMBEDDING"),
  "singleEmbeddingParams!": structure({
    "embeddingPurpose!": choice(...purposes.split(" ")),
    embeddingDimension: oneOf(256, 384, 1024, 3072),
    text: novaText,
    image: novaImage,
  }),
});

/** Nova multimodal embeddings: one text or one image a call. Throws `BedrockError`. */
export function readNovaEmbedding(body: JsonRecord): EmbeddingResult {
  checkShape(body, nova);
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

const embeddingTypes = list(choice("float"));
const rules: Readonly<Record<3 | 4, Shape>> = {
  3: structure({
    embedding_types: embeddingTypes,
    "input_type!": choice(...inputTypes, "image"),
    texts: texts(2048),
    images: { kind: "list", of: anything, length: [1, 1] },
    truncate: choice("NONE", "START", "END"),
  }),
  4: structure({
    embedding_types: embeddingTypes,
    "input_type!": choice(...inputTypes),
    texts: texts(undefined),
    images: { kind: "list", of: anything, length: [1, 96] },
    inputs: {
      kind: "list",
      length: [1, 96],
      of: structure({ "content!": { kind: "list", of: anything, length: [1, undefined] } }),
    },
    truncate: choice("NONE", "LEFT", "RIGHT"),
    output_dimension: oneOf(256, 512, 1024, 1536),
    max_tokens: anything,
  }),
};

function texts(longest: number | undefined): Shape {
  return { kind: "list", length: [1, 96], of: { kind: "string", length: [1, longest] } };
}

/** Cohere embeddings: many inputs a call, with a purpose; floats only. Throws `BedrockError`. */
export function readCohereEmbedding(body: JsonRecord, version: 3 | 4): EmbeddingResult {
  checkShape(body, rules[version]);
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
  checkShape(type, choice("text"), `${at}/type`);
  checkShape(text, someText, `${at}/text`);
  return { text: stringOf(text), tokens: countTokens(stringOf(text)) };
}

/** The result of an InvokeModel call. */
export interface EmbeddingResult {
  readonly promptTokens: number;
  /** The body of the answer. */
  readonly answer: JsonRecord;
}

function oneOf(...values: readonly number[]): Shape {
  return { kind: "integer", values };
}

function checkTokens(count: number, limit: number): void {
  if (count <= limit) return;
  throw invalid(
    `400 Bad Request: Too many input tokens. Max input tokens: ${limit}, request input token ` +
      `count: ${count}`,
  );
}

function malformed(detail: string): BedrockError {
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
