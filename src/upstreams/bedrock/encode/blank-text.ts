/**
 * Whether a text is empty or white space: the provider refuses blocks of such text, even of a
 * single space. Stops at the first visible character.
 */
export function isBlank(text: string): boolean {
  return !/\S/.test(text);
}
