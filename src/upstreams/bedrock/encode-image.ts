import type { BedrockModel } from "./bedrock-model.ts";
import type { ImageBlock, ImageFormat } from "./converse-body.ts";
import { byteLengthOf, parseDataUrl } from "./data-url.ts";
import { invalidRequest, unsupported } from "./refusal.ts";

/** An image from its `data:` address. Other addresses are not read here. */
export function encodeImage(
  url: string,
  { capabilities }: BedrockModel,
  place: string,
): ImageBlock {
  if (!capabilities.images) {
    throw unsupported(place, `${place}: this model takes no images. Remove the image.`);
  }
  if (/^https?:/i.test(url)) {
    throw invalidRequest(
      place,
      `${place}: addresses of images are not read here. Send the image itself as a data URL: ` +
        "data:image/png;base64,...",
    );
  }
  const data = parseDataUrl(url);
  if (data === undefined) {
    throw invalidRequest(place, `${place}: the image is no data URL with sound base64 data.`);
  }
  if (byteLengthOf(data.base64) > capabilities.maxImageBytes) {
    throw invalidRequest(
      place,
      `${place}: an image may have ${capabilities.maxImageBytes} bytes at most.`,
    );
  }
  const format = formatOfBytes(data.base64) ?? formats[data.mediaType];
  if (format === undefined) {
    throw invalidRequest(
      place,
      `${place}: the image must be PNG, JPEG, GIF or WebP, not '${data.mediaType.slice(0, 64)}'.`,
    );
  }
  return { image: { format, source: { bytes: data.base64 } } };
}

/** The bytes decide: a model refuses an image whose label is wrong, and labels often are. */
function formatOfBytes(base64: string): ImageFormat | undefined {
  const isWebp = base64.startsWith("UklGR") && base64.startsWith("RUJQ", 12);
  return isWebp ? "webp" : firstBytes.find(([start]) => base64.startsWith(start))?.[1];
}

/** Signatures in base64, as far as whole characters of it depend on them alone. */
const firstBytes: readonly (readonly [string, ImageFormat])[] = [
  ["iVBORw0KGg", "png"],
  ["/9j/", "jpeg"],
  ["R0lGOD", "gif"],
];

const formats: Readonly<Record<string, ImageFormat | undefined>> = {
  "image/png": "png",
  "image/jpeg": "jpeg",
  "image/jpg": "jpeg",
  "image/gif": "gif",
  "image/webp": "webp",
};
