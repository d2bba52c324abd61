import { createCipheriv, createDecipheriv } from "node:crypto";
import type { RandomBytes } from "./base62.ts";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/** Both parts are needed to open sealed bytes. */
export interface Seal {
  /** 32 bytes. */
  readonly key: Uint8Array;
  /** Authenticated but neither encrypted nor included. */
  readonly context: string;
}

/** Encrypts the joined parts; returns nonce, tag and ciphertext. */
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

/** Throws if the bytes were sealed otherwise or changed. */
export function openBytes(sealed: Uint8Array, { key, context }: Seal): Buffer {
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes));
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
  const opened = decipher.update(sealed.subarray(nonceBytes + tagBytes));
  return Buffer.concat([opened, decipher.final()]);
}
