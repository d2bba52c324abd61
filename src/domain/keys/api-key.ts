import { decodeBase62, encodeBase62, randomBase62, type RandomBytes } from "./base62.ts";

/** Prefix of API keys. */
const prefix = "sk-slc_";

/** Pattern for secret scanners. */
export const apiKeyPattern = /sk-slc_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}/;

type ApiKeyText = CredentialText;

export function generateApiKey(random: RandomBytes): ApiKeyText {
  return generateCredential(prefix, random);
}

/** The public id of a well-formed key; undefined for any other text. */
export function readPublicId(text: string): string | undefined {
  return readCredential(prefix, text);
}

/** Masks every API key in a text: callers log their answers. */
export function maskApiKeys(text: string): string {
  return text.replaceAll(new RegExp(apiKeyPattern, "g"), maskApiKey);
}

/** The part of a key that may be shown: its head and last four characters. */
export function maskApiKey(text: string): string {
  if (text.length <= 12) return "*".repeat(text.length);
  const separator = prefix.length + publicIdLength;
  const head = text.startsWith(prefix) ? text.slice(0, Math.min(separator, text.length - 8)) : "";
  return `${head}****${text.slice(-4)}`;
}

/** Prefix of management tokens, which scripts use to sign in to the control plane. */
const tokenPrefix = "slc-mgt_";

/** Pattern for secret scanners. */
export const managementTokenPattern = /slc-mgt_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}/;

export function generateManagementToken(random: RandomBytes): CredentialText {
  return generateCredential(tokenPrefix, random);
}

/** The public id of a well-formed token; undefined for any other text. */
export function readTokenId(text: string): string | undefined {
  return readCredential(tokenPrefix, text);
}

/** The part of an issued token that may be shown. */
export function tokenHint(publicId: string): string {
  return tokenPrefix + publicId;
}

/**
 * Credentials have the form `<prefix><8 base62 public id>_<43 base62 secret><6 base62 CRC-32>`. The
 * CRC covers everything before it, so that typos are detected without a lookup; the public id
 * identifies the secret in logs and tables.
 */
const publicIdLength = 8;
const secretLength = 43;
const checksumLength = 6;

interface CredentialText {
  readonly publicId: string;
  readonly text: string;
}

function generateCredential(prefix: string, random: RandomBytes): CredentialText {
  const publicId = randomBase62(publicIdLength, random);
  const body = `${prefix}${publicId}_${randomBase62(secretLength, random)}`;
  return { publicId, text: body + checksum(body) };
}

/** The public id of a well-formed credential; undefined for any other text. */
function readCredential(prefix: string, text: string): string | undefined {
  const separator = prefix.length + publicIdLength;
  if (text.length !== separator + 1 + secretLength + checksumLength) return undefined;
  if (!text.startsWith(prefix) || text.charAt(separator) !== "_") return undefined;
  if (Number.isNaN(decodeBase62(text, prefix.length, separator))) return undefined;
  const end = text.length - checksumLength;
  if (Number.isNaN(decodeBase62(text, separator + 1, end))) return undefined;
  const isChecked = decodeBase62(text, end, text.length) === Bun.hash.crc32(text.slice(0, end));
  return isChecked ? text.slice(prefix.length, separator) : undefined;
}

function checksum(body: string): string {
  return encodeBase62(Bun.hash.crc32(body), checksumLength);
}

/** How the callers of a dialect send their API key, and how they are told to. */
export interface CredentialForm {
  /** The text sent as the key; empty when there is none. */
  read(headers: Headers): string;
  /** Name of the credential that a request must carry, for operators. */
  readonly name: string;
  /** The header of the key with an example, for callers. */
  readonly header: string;
  /** Headers of an answer that asks for a key. */
  readonly challenge: Readonly<Record<string, string>>;
}

/** `Authorization: Bearer KEY` */
export const bearer: CredentialForm = {
  read: (headers) => readBearer(headers.get("authorization")),
  name: "Authorization header with a Bearer key",
  header: "Authorization header (Authorization: Bearer YOUR_KEY)",
  challenge: { "www-authenticate": "Bearer" },
};

function readBearer(authorization: string | null): string {
  if (authorization === null) return "";
  const separator = authorization.indexOf(" ");
  if (separator !== 6 || authorization.slice(0, 6).toLowerCase() !== "bearer") return "";
  return authorization.slice(7).trim();
}
