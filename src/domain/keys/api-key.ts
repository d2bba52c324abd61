import type { RandomBytes } from "./base62.ts";
import {
  generateCredential,
  publicIdLength,
  readCredential,
  type CredentialText,
} from "./credential-text.ts";

/** Text of an API key: a credential text that begins so. */
const prefix = "sk-slc_";

/** What scanners search for to find leaked keys. */
export const apiKeyPattern = /sk-slc_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}/;

export type ApiKeyText = CredentialText;

export function generateApiKey(random: RandomBytes): ApiKeyText {
  return generateCredential(prefix, random);
}

/** The public id of a well-formed key, or undefined for anything that cannot be one. */
export function readPublicId(text: string): string | undefined {
  return readCredential(prefix, text);
}

/** A text with every API key in it masked: answers get into the logs of callers. */
export function maskApiKeys(text: string): string {
  return text.replaceAll(new RegExp(apiKeyPattern, "g"), maskApiKey);
}

/** What may be shown of a key a caller sent: its head and its last four characters. */
export function maskApiKey(text: string): string {
  if (text.length <= 12) return "*".repeat(text.length);
  const separator = prefix.length + publicIdLength;
  const head = text.startsWith(prefix) ? text.slice(0, Math.min(separator, text.length - 8)) : "";
  return `${head}****${text.slice(-4)}`;
}
