import { apiKeyPattern } from "../../domain/keys/api-key.ts";

/** Longer than any key: what a piece of text ends with may be the beginning of one. */
const overlapLength = 128;

/** Every text that has the form of an API key, each once, in a text that need not fit memory. */
export async function findKeys(chunks: AsyncIterable<Uint8Array>): Promise<readonly string[]> {
  const found = new Set<string>();
  // Byte by byte: keys are ASCII, and what surrounds them may be in any encoding.
  const decoder = new TextDecoder("latin1");
  let rest = "";
  for await (const chunk of chunks) {
    const text = rest + decoder.decode(chunk, { stream: true });
    for (const [key] of text.matchAll(new RegExp(apiKeyPattern, "g"))) found.add(key);
    rest = text.slice(-overlapLength);
  }
  return [...found];
}
