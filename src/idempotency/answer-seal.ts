import { hkdfSync } from "node:crypto";
import type { RandomBytes } from "../domain/keys/base62.ts";
import { openBytes, sealBytes, type Seal } from "../domain/keys/sealed-bytes.ts";
import type { CallNames } from "./call-names.ts";

/** A whole answer, as it was sent. */
export interface KeptAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly isStreamed: boolean;
  /** The body, or all frames of a stream. */
  readonly text: string;
}

export interface SealServices {
  readonly random: RandomBytes;
}

const lengthBytes = 4;

/**
 * Encrypts an answer. It takes the pepper and the caller's `Idempotency-Key` to read it: a copy of
 * the database alone shows nothing. Nonce, tag, then the length of the head, the head and the text.
 */
export function sealAnswer(
  answer: KeptAnswer,
  names: CallNames,
  { random }: SealServices,
): Uint8Array {
  const { headers, isStreamed, text } = answer;
  const head = Buffer.from(JSON.stringify({ headers, isStreamed }));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(head.byteLength);
  return sealBytes([length, head, text], sealOf(names), random);
}

/** Throws for what was not sealed for the same call, or was changed since. */
export function openAnswer(sealed: Uint8Array, names: CallNames): KeptAnswer {
  const opened = openBytes(sealed, sealOf(names));
  const textStart = lengthBytes + opened.readUInt32BE(0);
  const head: unknown = JSON.parse(opened.toString("utf8", lengthBytes, textStart));
  return { ...readHead(head), text: opened.toString("utf8", textStart) };
}

function readHead(head: unknown): Omit<KeptAnswer, "text"> {
  if (typeof head !== "object" || head === null) throw malformed();
  if (!("headers" in head) || !("isStreamed" in head)) throw malformed();
  const { headers, isStreamed } = head;
  if (typeof headers !== "object" || headers === null) throw malformed();
  const texts = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
  return { headers: Object.fromEntries(texts), isStreamed: isStreamed === true };
}

function malformed(): Error {
  return new Error("a kept answer has another form than this version writes");
}

function sealOf({ id, idempotencyKey, requestDigest, digest }: CallNames): Seal {
  const secret = digest("answers of calls that may be repeated");
  const key = new Uint8Array(hkdfSync("sha256", secret, id, idempotencyKey, 32));
  return { key, context: id + requestDigest };
}
