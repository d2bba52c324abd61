import type { RandomBytes } from "./base62.ts";
import {
  generateCredential,
  publicIdLength,
  readCredential,
  type CredentialText,
} from "./credential-text.ts";

/** Prefix of API keys. */
const prefix = "sk-slc_";

/** Pattern for secret scanners. */
export const apiKeyPattern = /sk-slc_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}/;

export type ApiKeyText = CredentialText;

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
