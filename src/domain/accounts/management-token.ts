import type { RandomBytes } from "../keys/base62.ts";
import {
  generateCredential,
  readCredential,
  type CredentialText,
} from "../keys/credential-text.ts";

/** Text of a management token, with which scripts sign in to the control plane. */
const prefix = "slc-mgt_";

/** What scanners search for to find leaked tokens. */
export const managementTokenPattern = /slc-mgt_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}/;

export function generateManagementToken(random: RandomBytes): CredentialText {
  return generateCredential(prefix, random);
}

/** The public id of a well-formed token, or undefined for anything that cannot be one. */
export function readTokenId(text: string): string | undefined {
  return readCredential(prefix, text);
}

/** What may be shown of a token once it was issued. */
export function tokenHint(publicId: string): string {
  return prefix + publicId;
}
