import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import type { RandomBytes } from "../domain/keys/base62.ts";
import { isObject } from "../domain/json-object.ts";
import type { KeptAnswer } from "./answer.ts";
import type { RequestNames } from "./request-names.ts";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

const purpose = "answers of calls that may be repeated";

export function sealAnswer(
  answer: KeptAnswer,
  names: RequestNames,
  random: RandomBytes,
): Uint8Array {
  return sealReply(JSON.stringify(answer), { names, purpose }, random);
}

/** Throws for bytes that were sealed for another call or changed since. */
export function openAnswer(sealed: Uint8Array, names: RequestNames): KeptAnswer {
  const answer: unknown = JSON.parse(openReply(sealed, { names, purpose }));
  if (!isAnswer(answer)) throw new Error("a kept answer has another form than this version writes");
  return answer;
}

function isAnswer(value: unknown): value is KeptAnswer {
  return isObject(value) && isObject(value["headers"]) && typeof value["text"] === "string";
}

export interface ReplySeal {
  readonly names: RequestNames;
  /** The kind of reply; part of the secret. */
  readonly purpose: string;
}

/**
 * Encrypts an answer with the pepper and the caller's `Idempotency-Key`, so a
 * copy of the database alone cannot be read. Returns nonce, tag and ciphertext.
 */
export function sealReply(text: string, seal: ReplySeal, random: RandomBytes): Uint8Array {
  const nonce = random(new Uint8Array(nonceBytes));
  const cipher = createCipheriv(algorithm, secretOf(seal), nonce);
  cipher.setAAD(contextOf(seal));
  const sealed = [cipher.update(text, "utf8"), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]);
}

/** Throws for bytes that were sealed for another request or changed since. */
export function openReply(sealed: Uint8Array, seal: ReplySeal): string {
  const decipher = createDecipheriv(algorithm, secretOf(seal), sealed.subarray(0, nonceBytes));
  decipher.setAAD(contextOf(seal));
  decipher.setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
  const opened = decipher.update(sealed.subarray(nonceBytes + tagBytes));
  return Buffer.concat([opened, decipher.final()]).toString();
}

function secretOf({ names: { id, key, digest }, purpose }: ReplySeal): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", digest(purpose), id, key, 32));
}

/** Authenticated but neither encrypted nor included. */
function contextOf({ names: { id, requestDigest } }: ReplySeal): Buffer {
  return Buffer.from(id + requestDigest);
}
