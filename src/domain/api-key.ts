import { encodeBase62, isBase62, randomBase62, type RandomBytes } from "./base62.ts";

/**
 * Text of an API key: `sk-slc_<8 base62 public id>_<43 base62 secret><6 base62 CRC-32>`.
 * The CRC covers everything before it, so typos and junk are told apart without a look-up;
 * the public id names the secret in logs and tables.
 */
const prefix = "sk-slc_";
const publicIdLength = 8;
const secretLength = 43;
const checksumLength = 6;
const textLength = prefix.length + publicIdLength + 1 + secretLength + checksumLength;

/** What scanners search for to find leaked keys. */
export const apiKeyPattern = /sk-slc_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}/;

export interface ApiKeyText {
  readonly publicId: string;
  readonly text: string;
}

export function generateApiKey(random: RandomBytes): ApiKeyText {
  const publicId = randomBase62(publicIdLength, random);
  const body = `${prefix}${publicId}_${randomBase62(secretLength, random)}`;
  return { publicId, text: body + checksum(body) };
}

/** The public id of a well-formed key, or undefined for anything that cannot be one. */
export function readPublicId(text: string): string | undefined {
  if (text.length !== textLength || !text.startsWith(prefix)) return undefined;
  const separator = prefix.length + publicIdLength;
  if (text.charAt(separator) !== "_") return undefined;
  const publicId = text.slice(prefix.length, separator);
  if (!isBase62(publicId) || !isBase62(text.slice(separator + 1))) return undefined;
  const body = text.slice(0, -checksumLength);
  return checksum(body) === text.slice(-checksumLength) ? publicId : undefined;
}

/** What may be shown of a key a caller sent: its head and its last four characters. */
export function maskApiKey(text: string): string {
  if (text.length <= 12) return "*".repeat(text.length);
  const separator = prefix.length + publicIdLength;
  const head = text.startsWith(prefix) ? text.slice(0, Math.min(separator, text.length - 8)) : "";
  return `${head}****${text.slice(-4)}`;
}

function checksum(body: string): string {
  return encodeBase62(Bun.hash.crc32(body), checksumLength);
}
