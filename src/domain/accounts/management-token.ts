import type { RandomBytes } from "../keys/base62.ts";
import {
  generateCredential,
  readCredential,
  type CredentialText,
} from "../keys/credential-text.ts";

/** Prefix of management tokens, which scripts use to sign in to the control plane. */
const prefix = "slc-mgt_";

/** Pattern for secret scanners. */
export const managementTokenPattern = /slc-mgt_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}/;

export function generateManagementToken(random: RandomBytes): CredentialText {
  return generateCredential(prefix, random);
}

/** The public id of a well-formed token; undefined for any other text. */
export function readTokenId(text: string): string | undefined {
  return readCredential(prefix, text);
}

/** The part of an issued token that may be shown. */
export function tokenHint(publicId: string): string {
  return prefix + publicId;
}
