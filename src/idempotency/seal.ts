import { hkdfSync } from "node:crypto";
import type { RandomBytes } from "../domain/keys/base62.ts";
import { openBytes, sealBytes, type Seal } from "../domain/keys/sealed-bytes.ts";
import type { RequestNames } from "./request-names.ts";

export interface ReplySeal {
  readonly names: RequestNames;
  /** The kind of reply; part of the secret. */
  readonly purpose: string;
}

/**
 * Encrypts the joined parts of an answer with the pepper and the caller's `Idempotency-Key`, so a
 * copy of the database alone cannot be read.
 */
export function sealReply(
  parts: readonly (Uint8Array | string)[],
  seal: ReplySeal,
  random: RandomBytes,
): Uint8Array {
  return sealBytes(parts, sealOf(seal), random);
}

/** Throws for bytes that were sealed for another request or changed since. */
export function openReply(sealed: Uint8Array, seal: ReplySeal): Buffer {
  return openBytes(sealed, sealOf(seal));
}

function sealOf({ names: { id, key, requestDigest, digest }, purpose }: ReplySeal): Seal {
  const sealed = hkdfSync("sha256", digest(purpose), id, key, 32);
  return { key: new Uint8Array(sealed), context: id + requestDigest };
}
