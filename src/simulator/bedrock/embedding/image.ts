import { hashText } from "../../answer/random.ts";
import { malformed } from "./check-body.ts";

/** The tokens of every image: those of one of 500 by 500 pixels. */
export const tokensPerImage = 1_610;

export interface ImageRules {
  readonly formats: readonly string[];
  readonly maxBytes: number;
}

/** Checks an image in base64 and returns its format and hash as a text. Throws `BedrockError`. */
export function readImage(base64: unknown, at: string, rules: ImageRules): string {
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
export function readDataUrl(url: unknown, at: string, rules: ImageRules): string {
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
