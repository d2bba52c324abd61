const sign = "mark:";

/**
 * The word by which a request can be told from all others in the truth log, whatever wire it came
 * over and whoever passed it on: what follows `mark:` in any of its texts.
 */
export function markOf(body: string): string | null {
  const place = body.indexOf(sign);
  if (place < 0) return null;
  return (
    /^[\w-]{1,64}/.exec(body.slice(place + sign.length, place + sign.length + 64))?.[0] ?? null
  );
}
