import type {
  Block,
  DocumentBlock as Document,
  ImageBlock as UrlImage,
  Wire,
} from "../../../domain/chat/conversation.ts";
import { isBlank } from "../../shared/adjustments.ts";
import { invalidRequest, unsupported } from "../../../domain/errors/upstream-failure.ts";
import {
  type ContentBlock,
  type DocumentBlock,
  type ImageBlock,
  type ResultBlock,
  type TextBlock,
  type Turn,
  type DocumentFormat,
  documentFormats as formats,
} from "./converse-body.ts";
import type { BedrockModel } from "../models/bedrock-model.ts";
import {
  byteLengthOf,
  type DataUrl,
  imageFormatOf,
  type ImageFormat,
  imageFormats,
  parseDataUrl,
  soundBase64,
} from "../../../domain/chat/data-url.ts";
import { keysOf } from "../../../domain/json-fields.ts";

/** The blocks for one block of a user's turn or of a tool's result; none if it is blank. */
export function encodeInput(block: Block, context: InputContext): readonly ResultBlock[] {
  switch (block.type) {
    case "text":
    case "refusal":
      return isBlank(block.text) ? [] : [{ text: block.text }];
    case "image":
      return [encodeImage(block, context.model)];
    case "document":
      return encodeDocument(block, context);
    case "audio":
      throw unsupported(
        block.at,
        `${block.at}: this model does not accept audio. Send a transcript.`,
      );
    default:
      return [];
  }
}

function encodeImage({ url, at: path }: UrlImage, { capabilities }: BedrockModel): ImageBlock {
  if (!capabilities.images) {
    throw unsupported(path, `${path}: this model does not accept images. Remove the image.`);
  }
  const { maxImageBytes: maxBytes } = capabilities;
  const { format, base64 } = readImage(url, { formats: imageFormats, maxBytes }, path);
  return { image: { format, source: { bytes: base64 } } };
}

/** The images that a model accepts. */
export interface ImageRules {
  readonly formats: readonly ImageFormat[];
  /** Most bytes of one image, decoded. */
  readonly maxBytes: number;
}

export interface ReadImage {
  readonly format: ImageFormat;
  readonly base64: string;
}

const formatNames = { png: "PNG", jpeg: "JPEG", gif: "GIF", webp: "WebP" } as const;

/** An image from its `data:` address. Other addresses are not fetched here. */
export function readImage(url: string, { formats, maxBytes }: ImageRules, path: string): ReadImage {
  if (/^https?:/i.test(url)) {
    throw invalidRequest(
      path,
      `${path}: addresses of images are not read here. Send the image itself as a data URL: ` +
        "data:image/png;base64,...",
    );
  }
  const data = parseDataUrl(url);
  if (data === undefined) {
    throw invalidRequest(path, `${path}: the image is not a data URL with valid base64 data.`);
  }
  if (byteLengthOf(data.base64) > maxBytes) {
    throw invalidRequest(path, `${path}: an image may have ${maxBytes} bytes at most.`);
  }
  const format = imageFormatOf(data);
  if (format !== undefined && formats.includes(format)) return { format, base64: data.base64 };
  const names = formats.map((name) => formatNames[name]).join(", ");
  throw invalidRequest(
    path,
    `${path}: the image must be one of ${names}, not '${data.mediaType.slice(0, 64)}'.`,
  );
}

/** The provider's limit: 4.5 MB. */
const mostBytes = 4_500_000;

export interface InputContext {
  readonly wire: Wire;
  readonly model: BedrockModel;
  readonly names: DocumentNames;
}

/**
 * An inline document, after what the model is told about it; its media type or name determines the
 * format.
 */
function encodeDocument(
  { data: sent, text, filename = "", context: about, at: path, url }: Document,
  { model, names, wire }: InputContext,
): readonly (TextBlock | DocumentBlock)[] {
  if (!model.capabilities.documents) {
    throw unsupported(path, `${path}: this model does not accept files. Send the text itself.`);
  }
  if (url !== undefined) {
    throw unsupported(path, `${path}: addresses of files are not read here. Send the file itself.`);
  }
  const words = about === undefined || isBlank(about) ? [] : [{ text: about }];
  if (text !== undefined) {
    if (isBlank(text)) return words;
    const bytes = Buffer.from(text).toString("base64");
    checkSize(bytes, path);
    return [...words, documentBlock(names.nameFor(filename), "txt", bytes)];
  }
  if (sent === undefined) {
    const where = wire === "messages" ? "." : " in file_data, as a data URL.";
    throw unsupported(path, `${path}: file ids are not supported. Send the file itself${where}`);
  }
  const data = readFile(sent);
  if (data === undefined) {
    const what = wire === "messages" ? "the file" : "file_data";
    throw invalidRequest(path, `${path}: ${what} is not a data URL with valid base64 data.`);
  }
  checkSize(data.base64, path);
  const format = formatOf(data.mediaType, filename);
  if (format === undefined) {
    throw invalidRequest(
      path,
      `${path}: the kind of the file is unknown. Send PDF, CSV, Word, Excel, HTML, plain text ` +
        "or Markdown, and say so in the media type of the data URL or in the filename.",
    );
  }
  return [...words, documentBlock(names.nameFor(filename), format, data.base64)];
}

function checkSize(base64: string, path: string): void {
  if (byteLengthOf(base64) <= mostBytes) return;
  throw invalidRequest(path, `${path}: a file may have ${mostBytes} bytes at most.`);
}

function documentBlock(name: string, format: DocumentFormat, bytes: string): DocumentBlock {
  return { document: { name, format, source: { bytes } } };
}

/** Plain base64, without a `data:` address, is also common. */
function readFile(fileData: string): DataUrl | undefined {
  if (/^data:/i.test(fileData)) return parseDataUrl(fileData);
  const base64 = soundBase64(fileData);
  return base64 === undefined ? undefined : { mediaType: "", base64 };
}

/** For plain text the extension decides first: Markdown and CSV are often sent as plain text. */
function formatOf(mediaType: string, filename: string): DocumentFormat | undefined {
  const dot = filename.lastIndexOf(".");
  const extension = dot < 0 ? "" : filename.slice(dot + 1).toLowerCase();
  // Source code and similar text, which the model reads as it is.
  const isText = mediaType.startsWith("text/") || mediaType === "application/json";
  return (
    keysOf(formats).find((name) => formats[name].types.some((type) => type === mediaType)) ??
    keysOf(formats).find((name) => formats[name].extensions.includes(extension)) ??
    (isText ? "txt" : undefined)
  );
}

/**
 * Names of a request's documents. The provider accepts letters, digits, single white space,
 * hyphens, parentheses and brackets, at most 200 characters, and no name twice.
 */
export class DocumentNames {
  readonly #used = new Set<string>();
  /** The last number added to a repeated name: callers may repeat one name very often. */
  readonly #counts = new Map<string, number>();

  /** The name under which the model sees a file. Its extension is the document's format. */
  nameFor(filename: string): string {
    const readable = sanitize(filename.slice(0, 1_000)) || "document";
    let count = this.#counts.get(readable) ?? 1;
    let name = readable;
    while (this.#used.has(name)) {
      count += 1;
      name = `${readable} (${count})`;
    }
    this.#counts.set(readable, count);
    this.#used.add(name);
    return name;
  }
}

/** Leaves room for a number. */
const keptLength = 190;

function sanitize(filename: string): string {
  return filename
    .replace(/\.[a-zA-Z0-9]{1,8}$/, "")
    .replaceAll(/[^a-zA-Z0-9\s()[\]-]/g, "-")
    .replaceAll(/\s+/g, " ")
    .trim()
    .slice(0, keptLength)
    .trimEnd();
}

/** The provider's limit for one turn. */
const mostDocuments = 5;

/**
 * Counts the attachments of one request as they are added, so that too many end the encoding early.
 */
export class AttachmentLimits {
  readonly #maxImages: number;
  #imageCount = 0;
  #turn: Turn | undefined;
  #documentCount = 0;

  constructor({ maxImages }: { readonly maxImages: number }) {
    this.#maxImages = maxImages;
  }

  /** Called with each block and its turn; `path` is the part's path. */
  count(block: ContentBlock, turn: Turn | undefined, path: string): void {
    if ("image" in block) this.#countImage(path);
    else if ("document" in block) this.#countDocument(turn, path);
  }

  #countImage(path: string): void {
    this.#imageCount += 1;
    if (this.#imageCount <= this.#maxImages) return;
    throw invalidRequest(path, `${path}: a request may hold ${this.#maxImages} images.`);
  }

  #countDocument(turn: Turn | undefined, path: string): void {
    this.#documentCount = turn === this.#turn ? this.#documentCount + 1 : 1;
    this.#turn = turn;
    if (this.#documentCount <= mostDocuments) return;
    throw invalidRequest(
      path,
      `${path}: a turn of the user may hold ${mostDocuments} files. User messages in a row are ` +
        "one turn.",
    );
  }
}
