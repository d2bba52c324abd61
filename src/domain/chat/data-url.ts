export const imageFormats = ["png", "jpeg", "gif", "webp"] as const;
export type ImageFormat = (typeof imageFormats)[number];

/** The content of a `data:` address. */
export interface DataUrl {
  /** In lower case and without parameters; empty when the address has none. */
  readonly mediaType: string;
  readonly base64: string;
}

/** Undefined for anything but a `data:` address with valid data that is not empty. */
export function parseDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(",");
  if (comma < 0 || !/^data:/i.test(url)) return undefined;
  const [mediaType = "", ...parameters] = url.slice("data:".length, comma).split(";");
  const data = url.slice(comma + 1);
  const isBase64 = parameters.some((parameter) => /^\s*base64\s*$/i.test(parameter));
  const base64 = isBase64 ? soundBase64(data) : encodePlain(data);
  if (base64 === undefined) return undefined;
  return { mediaType: mediaType.trim().toLowerCase(), base64 };
}

/**
 * The text itself if it is base64 of at least one byte. Checked here, because the provider's answer
 * to other texts blames its own client.
 */
export function soundBase64(text: string): string | undefined {
  return text.length > 0 && text.length % 4 === 0 && base64Text.test(text) ? text : undefined;
}

/** How many bytes a base64 text encodes. */
export function byteLengthOf(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

const base64Text = /^[A-Za-z0-9+/]+={0,2}$/;

function encodePlain(data: string): string | undefined {
  if (data === "") return undefined;
  try {
    return Buffer.from(decodeURIComponent(data)).toString("base64");
  } catch {
    return undefined;
  }
}

/**
 * Undefined for other formats. The bytes decide: media types are often wrong, and a model refuses
 * an image with a wrong one.
 */
export function imageFormatOf({ base64, mediaType }: DataUrl): ImageFormat | undefined {
  const type = mediaType === "image/jpg" ? "image/jpeg" : mediaType;
  return formatOfBytes(base64) ?? imageFormats.find((format) => type === `image/${format}`);
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
