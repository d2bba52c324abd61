import { createCipheriv, createDecipheriv } from "node:crypto";
import type { RandomBytes } from "./base62.ts";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/** What bytes are sealed under: who opens them must have both. */
export interface Seal {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** Not encrypted, and not part of what is sealed. */
  readonly context: string;
}

/** Encrypts the parts, joined: nonce, tag, then the text. */
export function sealBytes(
  parts: readonly (Uint8Array | string)[],
  { key, context }: Seal,
  random: RandomBytes,
): Uint8Array {
  const nonce = random(new Uint8Array(nonceBytes));
  const cipher = createCipheriv(algorithm, key, nonce);
  cipher.setAAD(Buffer.from(context));
  const sealed = parts.map((part) =>
    typeof part === "string" ? cipher.update(part, "utf8") : cipher.update(part),
  );
  sealed.push(cipher.final());
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]);
}

/** Throws for what was not sealed under the same, or was changed since. */
export function openBytes(sealed: Uint8Array, { key, context }: Seal): Buffer {
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes));
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
  const opened = decipher.update(sealed.subarray(nonceBytes + tagBytes));
  return Buffer.concat([opened, decipher.final()]);
}
