import type { BedrockModel } from "../models/bedrock-model.ts";
import type { ImageBlock } from "../encode/converse-body.ts";
import { byteLengthOf, parseDataUrl } from "./data-url.ts";
import { imageFormatOf } from "./image-format.ts";
import { invalidRequest, unsupported } from "../failures/refusal.ts";

/** An image from its `data:` address. Other addresses are not fetched here. */
export function encodeImage(url: string, { capabilities }: BedrockModel, path: string): ImageBlock {
  if (!capabilities.images) {
    throw unsupported(path, `${path}: this model does not accept images. Remove the image.`);
  }
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
  if (byteLengthOf(data.base64) > capabilities.maxImageBytes) {
    throw invalidRequest(
      path,
      `${path}: an image may have ${capabilities.maxImageBytes} bytes at most.`,
    );
  }
  const format = imageFormatOf(data);
  if (format === undefined) {
    throw invalidRequest(
      path,
      `${path}: the image must be PNG, JPEG, GIF or WebP, not '${data.mediaType.slice(0, 64)}'.`,
    );
  }
  return { image: { format, source: { bytes: data.base64 } } };
}
