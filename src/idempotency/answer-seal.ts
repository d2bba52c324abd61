import type { RandomBytes } from "../domain/keys/base62.ts";
import type { RequestNames } from "./request-names.ts";
import type { KeptAnswer } from "./shared/answer.ts";
import { openReply, sealReply } from "./seal.ts";

const lengthBytes = 4;
const purpose = "answers of calls that may be repeated";

export function sealAnswer(
  answer: KeptAnswer,
  names: RequestNames,
  random: RandomBytes,
): Uint8Array {
  const { headers, isStreamed, text } = answer;
  const head = Buffer.from(JSON.stringify({ headers, isStreamed }));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32BE(head.byteLength);
  return sealReply([length, head, text], { names, purpose }, random);
}

/** Throws for bytes that were sealed for another call or changed since. */
export function openAnswer(sealed: Uint8Array, names: RequestNames): KeptAnswer {
  const opened = openReply(sealed, { names, purpose });
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
