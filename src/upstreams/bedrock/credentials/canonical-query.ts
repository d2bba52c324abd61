import { encodePathSegment } from "../endpoint.ts";

/**
 * Puts the query of an address (with or without its `?`) into the form that Signature Version 4
 * signs: names and values in one encoding, sorted by name and then by value.
 */
export function canonicalQuery(search: string): string {
  return search
    .replace(/^\?/, "")
    .split("&")
    .filter((pair) => pair !== "")
    .map(readPair)
    .toSorted((one, other) => compare(one.name, other.name) || compare(one.value, other.value))
    .map(({ name, value }) => `${name}=${value}`)
    .join("&");
}

interface Pair {
  readonly name: string;
  readonly value: string;
}

function readPair(text: string): Pair {
  const end = text.includes("=") ? text.indexOf("=") : text.length;
  return { name: encode(text.slice(0, end)), value: encode(text.slice(end + 1)) };
}

function encode(text: string): string {
  return encodePathSegment(decode(text));
}

/** A `+` is a plus sign; only HTML forms use it for a space. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that encodes nothing is taken literally.
    return text;
  }
}

/** By character code: all characters are ASCII here. */
function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
