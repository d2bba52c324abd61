/**
 * A text that every database returns as it was given: without half a surrogate pair, and without
 * NUL, which PostgreSQL refuses.
 */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}
