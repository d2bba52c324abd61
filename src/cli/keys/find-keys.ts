import { apiKeyPattern } from "../../domain/keys/api-key.ts";

/** Longer than any key, because a key may span two pieces. */
const overlapLength = 128;

/** Finds every distinct text in the form of an API key, in input of any size. */
export async function findKeys(chunks: AsyncIterable<Uint8Array>): Promise<readonly string[]> {
  const found = new Set<string>();
  // Latin-1 preserves every byte, and keys are ASCII in text of any encoding.
  const decoder = new TextDecoder("latin1");
  let rest = "";
  for await (const chunk of chunks) {
    const text = rest + decoder.decode(chunk, { stream: true });
    for (const [key] of text.matchAll(new RegExp(apiKeyPattern, "g"))) found.add(key);
    rest = text.slice(-overlapLength);
  }
  return [...found];
}
