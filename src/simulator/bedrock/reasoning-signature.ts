import { createHash } from "node:crypto";

/** What a model signs its thoughts with, so that it knows them again: made from them alone. */
export function reasoningSignature(thoughts: string): string {
  return createHash("sha512").update(`thoughts: ${thoughts}`).digest("base64");
}
