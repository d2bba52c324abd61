const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const pattern = /^[0-9A-Za-z]+$/;

export function isBase62(text: string): boolean {
  return pattern.test(text);
}

/** Encodes a non-negative integer in exactly `length` digits, most significant first. */
export function encodeBase62(value: number, length: number): string {
  let text = "";
  let rest = value;
  while (text.length < length) {
    text = alphabet.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}

/** Fills `target` with cryptographically random bytes. */
export type RandomBytes = (target: Uint8Array) => Uint8Array;

/** `length` evenly distributed characters: bytes above 247 (= 62 x 4 - 1) are drawn again. */
export function randomBase62(length: number, random: RandomBytes): string {
  let text = "";
  while (text.length < length) {
    for (const byte of random(new Uint8Array(length * 2))) {
      if (byte < 248 && text.length < length) text += alphabet.charAt(byte % 62);
    }
  }
  return text;
}
