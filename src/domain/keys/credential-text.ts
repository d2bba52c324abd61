import { encodeBase62, isBase62, randomBase62, type RandomBytes } from "./base62.ts";

/**
 * Credentials have the form `<prefix><8 base62 public id>_<43 base62 secret><6 base62 CRC-32>`. The
 * CRC covers everything before it, so that typos are detected without a lookup; the public id
 * identifies the secret in logs and tables.
 */
export const publicIdLength = 8;
const secretLength = 43;
const checksumLength = 6;

export interface CredentialText {
  readonly publicId: string;
  readonly text: string;
}

export function generateCredential(prefix: string, random: RandomBytes): CredentialText {
  const publicId = randomBase62(publicIdLength, random);
  const body = `${prefix}${publicId}_${randomBase62(secretLength, random)}`;
  return { publicId, text: body + checksum(body) };
}

/** The public id of a well-formed credential; undefined for any other text. */
export function readCredential(prefix: string, text: string): string | undefined {
  const separator = prefix.length + publicIdLength;
  if (text.length !== separator + 1 + secretLength + checksumLength) return undefined;
  if (!text.startsWith(prefix) || text.charAt(separator) !== "_") return undefined;
  const publicId = text.slice(prefix.length, separator);
  if (!isBase62(publicId) || !isBase62(text.slice(separator + 1))) return undefined;
  const body = text.slice(0, -checksumLength);
  return checksum(body) === text.slice(-checksumLength) ? publicId : undefined;
}

function checksum(body: string): string {
  return encodeBase62(Bun.hash.crc32(body), checksumLength);
}
