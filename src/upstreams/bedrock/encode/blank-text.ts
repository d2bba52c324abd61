/**
 * Whether a text is empty or white space: the provider refuses blocks of such text, of a single
 * space too. Stops at the first character that is seen.
 */
export function isBlank(text: string): boolean {
  return !/\S/.test(text);
}
