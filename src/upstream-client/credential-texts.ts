import type { UpstreamRequest } from "../upstreams/adapter.ts";

const plainHeaders: ReadonlySet<string> = new Set(["content-type", "accept", "accept-encoding"]);

/**
 * Parts of a request that may hold a credential: the values of its headers and query, and those
 * words in them that do not look like plain words.
 */
export function credentialTexts({
  url,
  headers,
}: Pick<UpstreamRequest, "url" | "headers">): readonly string[] {
  const texts = new Set<string>();
  for (const value of secretValues(url, headers)) {
    const unprefixed = value.slice(value.indexOf(" ") + 1);
    for (const text of [value, unprefixed]) if (text.length >= 8) texts.add(text);
    for (const word of value.split(/[\s,=/]+/)) if (looksSecret(word)) texts.add(word);
  }
  return [...texts];
}

function* secretValues(url: string, headers: UpstreamRequest["headers"]): Iterable<string> {
  for (const [name, value] of Object.entries(headers)) {
    if (!plainHeaders.has(name.toLowerCase())) yield value;
  }
  // Some servers take the key as a query parameter.
  const query = url.indexOf("?");
  if (query !== -1) yield* new URLSearchParams(url.slice(query + 1)).values();
}

function looksSecret(word: string): boolean {
  return word.length >= 16 || (word.length >= 8 && /\d/.test(word));
}
