const prefix = "mark:";

/** The word after `mark:` in any text of a request; identifies the request in the truth log. */
export function markOf(body: string): string | null {
  const place = body.indexOf(prefix);
  if (place < 0) return null;
  return (
    /^[\w-]{1,64}/.exec(body.slice(place + prefix.length, place + prefix.length + 64))?.[0] ?? null
  );
}
