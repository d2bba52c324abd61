import type { UpstreamRequest } from "../upstreams/adapter.ts";

const plainHeaders: ReadonlySet<string> = new Set(["content-type", "accept", "accept-encoding"]);

/**
 * What the headers of a request may hold of a credential: their values, and words of them that are
 * no plain words. Longest first, so that no rest of one stays behind where another was removed.
 */
export function credentialTexts(headers: UpstreamRequest["headers"]): readonly string[] {
  const texts = new Set<string>();
  for (const [name, value] of Object.entries(headers)) {
    if (plainHeaders.has(name.toLowerCase())) continue;
    const unprefixed = value.slice(value.indexOf(" ") + 1);
    for (const text of [value, unprefixed]) if (text.length >= 8) texts.add(text);
    for (const word of value.split(/[\s,=/]+/)) if (isNoPlainWord(word)) texts.add(word);
  }
  return [...texts].toSorted((one, other) => other.length - one.length);
}

function isNoPlainWord(word: string): boolean {
  return word.length >= 16 || (word.length >= 8 && /\d/.test(word));
}
