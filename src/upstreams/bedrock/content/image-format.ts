import type { ImageFormat } from "../encode/converse-body.ts";
import type { DataUrl } from "./data-url.ts";

export type { ImageFormat };

/**
 * Undefined for other formats. The bytes decide: media types are often wrong, and a model refuses
 * an image with a wrong one.
 */
export function imageFormatOf({ base64, mediaType }: DataUrl): ImageFormat | undefined {
  return formatOfBytes(base64) ?? formatsByType.get(mediaType);
}

function formatOfBytes(base64: string): ImageFormat | undefined {
  const isWebp = base64.startsWith("UklGR") && base64.startsWith("RUJQ", 12);
  return isWebp ? "webp" : firstBytes.find(([start]) => base64.startsWith(start))?.[1];
}

/** Signatures in base64, up to the last character that depends on them alone. */
const firstBytes: readonly (readonly [string, ImageFormat])[] = [
  ["iVBORw0KGg", "png"],
  ["/9j/", "jpeg"],
  ["R0lGOD", "gif"],
];

const formatsByType: ReadonlyMap<string, ImageFormat> = new Map([
  ["image/png", "png"],
  ["image/jpeg", "jpeg"],
  ["image/jpg", "jpeg"],
  ["image/gif", "gif"],
  ["image/webp", "webp"],
]);
