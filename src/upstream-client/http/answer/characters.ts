/** What bytes mean in the heads of messages (RFC 9110, section 5.6.2; RFC 9112, section 2.2). */

export const lineFeed = 0x0a;
export const carriageReturn = 0x0d;
export const space = 0x20;
export const tab = 0x09;

const tokenCharacters = new Uint8Array(128);
for (const character of "!#$%&'*+-.^_`|~0123456789") {
  tokenCharacters[character.charCodeAt(0)] = 1;
}
for (let letter = 0; letter < 26; letter += 1) {
  tokenCharacters[0x41 + letter] = 1;
  tokenCharacters[0x61 + letter] = 1;
}

/** Whether the name of a header may contain it. */
export function isTokenCharacter(code: number): boolean {
  return code < 128 && tokenCharacters[code] === 1;
}

/** Whether the value of a header or a reason may contain it. */
export function isTextCharacter(code: number): boolean {
  return code >= space ? code !== 0x7f : code === tab;
}

/** The value of a hexadecimal digit; -1 for anything else. */
export function hexadecimalValue(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Whether a text, in any case, has another there, which is in lower case. */
export function hasTextAt(text: string, start: number, lower: string): boolean {
  for (let index = 0; index < lower.length; index += 1) {
    const code = text.charCodeAt(start + index);
    const own = code >= 0x41 && code <= 0x5a ? code + 0x20 : code;
    if (own !== lower.charCodeAt(index)) return false;
  }
  return true;
}
