import { hkdfSync } from "node:crypto";
import type { RandomBytes } from "../domain/keys/base62.ts";
import { openBytes, sealBytes, type Seal } from "../domain/keys/sealed-bytes.ts";
import type { RequestNames } from "./request-names.ts";

export interface ReplySeal {
  readonly names: RequestNames;
  /** Tells apart what is sealed: part of the secret. */
  readonly purpose: string;
}

/**
 * Encrypts an answer, its parts joined. It takes the pepper and the caller's `Idempotency-Key` to
 * read it: a copy of the database alone shows nothing.
 */
export function sealReply(
  parts: readonly (Uint8Array | string)[],
  seal: ReplySeal,
  random: RandomBytes,
): Uint8Array {
  return sealBytes(parts, sealOf(seal), random);
}

/** Throws for what was not sealed for the same request, or was changed since. */
export function openReply(sealed: Uint8Array, seal: ReplySeal): Buffer {
  return openBytes(sealed, sealOf(seal));
}

function sealOf({ names: { id, key, requestDigest, digest }, purpose }: ReplySeal): Seal {
  const sealed = hkdfSync("sha256", digest(purpose), id, key, 32);
  return { key: new Uint8Array(sealed), context: id + requestDigest };
}
