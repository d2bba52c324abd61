import { hkdfSync } from "node:crypto";
import type { KeyDigest } from "../../domain/keys/peppers.ts";
import { openBytes, sealBytes, type Seal } from "../../domain/keys/sealed-bytes.ts";
import type { AdminServices } from "../services.ts";

/** What an answer is kept under. */
export interface ReplySeal {
  /** As the caller sent it; stored nowhere. */
  readonly key: string;
  readonly id: string;
  readonly requestDigest: string;
  /** What all of this was made with, and the answer is encrypted with. */
  readonly digest: KeyDigest;
}

/**
 * Encrypts an answer that may hold a new secret. It takes the pepper and the caller's key to read
 * it: a copy of the database alone shows nothing. Nonce, tag, then the text.
 */
export function sealReply(
  text: string,
  seal: ReplySeal,
  { random }: Pick<AdminServices, "random">,
): Uint8Array {
  return sealBytes([text], sealOf(seal), random);
}

/** Throws for what was not sealed with the same key, or was changed since. */
export function openReply(sealed: Uint8Array, seal: ReplySeal): string {
  return openBytes(sealed, sealOf(seal)).toString("utf8");
}

function sealOf({ id, key, requestDigest, digest }: ReplySeal): Seal {
  const secret = digest("replies that may be asked for again");
  return {
    key: new Uint8Array(hkdfSync("sha256", secret, id, key, 32)),
    context: id + requestDigest,
  };
}
