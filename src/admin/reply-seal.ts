import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import type { AdminServices } from "./services.ts";

/** What an answer is kept under. */
export interface ReplySeal {
  /** As the caller sent it; stored nowhere. */
  readonly key: string;
  readonly id: string;
  readonly requestDigest: string;
}

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Encrypts an answer that may hold a new secret. It takes the pepper and the caller's key to read
 * it: a copy of the database alone shows nothing. Nonce, tag, then the text.
 */
export function sealReply(
  text: string,
  seal: ReplySeal,
  { digest, random }: Pick<AdminServices, "digest" | "random">,
): Uint8Array {
  const nonce = random(new Uint8Array(nonceBytes));
  const cipher = createCipheriv(algorithm, sealKey(seal, digest), nonce);
  cipher.setAAD(Buffer.from(seal.id + seal.requestDigest));
  const sealed = [cipher.update(text, "utf8"), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]);
}

/** Throws for what was not sealed with the same key, or was changed since. */
export function openReply(
  sealed: Uint8Array,
  seal: ReplySeal,
  { digest }: Pick<AdminServices, "digest">,
): string {
  const nonce = sealed.subarray(0, nonceBytes);
  const decipher = createDecipheriv(algorithm, sealKey(seal, digest), nonce);
  decipher.setAAD(Buffer.from(seal.id + seal.requestDigest));
  decipher.setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
  const text = decipher.update(sealed.subarray(nonceBytes + tagBytes));
  return Buffer.concat([text, decipher.final()]).toString("utf8");
}

function sealKey(seal: ReplySeal, digest: AdminServices["digest"]): Uint8Array {
  const secret = digest("replies that may be asked for again");
  return new Uint8Array(hkdfSync("sha256", secret, seal.id, seal.key, 32));
}
