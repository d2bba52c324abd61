import {
  isContent,
  isImageText,
  type EmbeddingInput,
  type EmbeddingPart,
  type EmbeddingRequest,
} from "../../../domain/chat/embedding.ts";
import { byteLengthOf, parseDataUrl } from "../content/data-url.ts";
import { imageFormatOf, type ImageFormat } from "../content/image-format.ts";
import { invalidRequest, unsupported } from "../failures/refusal.ts";

/** The content of one vector, in the form that the provider's models accept. */
export interface ReadInput {
  /** All texts of the input, one on each line; empty without text. */
  readonly text: string;
  readonly images: readonly ReadImage[];
  /** In the caller's order, without empty texts. */
  readonly parts: readonly ReadPart[];
}

export type ReadPart = { readonly text: string } | ReadImage;

export interface ReadImage {
  readonly format: ImageFormat;
  readonly base64: string;
}

/** The images that a family accepts. */
export interface ImageRules {
  readonly formats: readonly ImageFormat[];
  /** Most bytes of one image, decoded. */
  readonly maxBytes: number;
}

/** Texts for a model that accepts only texts. Throws `UpstreamFailure` for images. */
export function textsOf({ inputs }: EmbeddingRequest): readonly string[] {
  return inputs.map((input) => {
    const { text } = readParts(partsOf(input), undefined);
    return text;
  });
}

/** Inputs for a model that also accepts images. Throws `UpstreamFailure` for other images. */
export function inputsOf({ inputs }: EmbeddingRequest, rules: ImageRules): readonly ReadInput[] {
  return inputs.map((input) => readParts(partsOf(input), rules));
}

/** Whether an input has an image, without reading the image. */
export function hasImage(input: EmbeddingInput): boolean {
  if (typeof input === "string") return isImageText(input);
  return isContent(input) && input.content.some(({ type }) => type === "image_url");
}

function partsOf(input: EmbeddingInput): readonly EmbeddingPart[] {
  if (typeof input === "string") {
    if (isImageText(input)) return [{ type: "image_url", image_url: { url: input } }];
    return [{ type: "text", text: input }];
  }
  if (isContent(input)) return input.content;
  throw new Error("token ids must become text before they come here");
}

function readParts(content: readonly EmbeddingPart[], rules: ImageRules | undefined): ReadInput {
  const parts = content.flatMap((part): readonly ReadPart[] => {
    if (part.type === "image_url") return [readImage(part.image_url.url, rules)];
    return part.text === "" ? [] : [{ text: part.text }];
  });
  if (parts.length === 0) throw invalidRequest("input", "An input has only empty texts.");
  return {
    text: parts.flatMap((part) => ("text" in part ? part.text : [])).join("\n"),
    images: parts.flatMap((part) => ("text" in part ? [] : part)),
    parts,
  };
}

function readImage(url: string, rules: ImageRules | undefined): ReadImage {
  if (rules === undefined) {
    throw unsupported("input", "This model embeds only texts: remove the image from 'input'.");
  }
  if (/^https?:/i.test(url)) {
    throw unsupported(
      "input",
      "Addresses of images are not read for embeddings. Send the image itself as a data URL: " +
        "data:image/png;base64,...",
    );
  }
  const data = parseDataUrl(url);
  if (data === undefined) {
    throw invalidRequest("input", "An image in 'input' is not a data URL with valid base64 data.");
  }
  if (byteLengthOf(data.base64) > rules.maxBytes) {
    throw invalidRequest(
      "input",
      `An image in 'input' is too large: this model accepts images of ${rules.maxBytes} bytes at most.`,
    );
  }
  const format = imageFormatOf(data);
  if (format === undefined || !rules.formats.includes(format)) {
    const names = rules.formats.map((name) => name.toUpperCase()).join(", ");
    throw invalidRequest("input", `An image in 'input' is in none of these formats: ${names}.`);
  }
  return { format, base64: data.base64 };
}
