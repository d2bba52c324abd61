const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** The value of each digit, by its code. */
const values = new Int8Array(128).fill(-1);
for (let value = 0; value < alphabet.length; value += 1) values[alphabet.charCodeAt(value)] = value;

/** The number that the digits from `start` to `end` stand for; NaN where one is none. */
export function decodeBase62(text: string, start: number, end: number): number {
  let number = 0;
  for (let at = start; at < end; at += 1) {
    const value = values[text.charCodeAt(at)] ?? -1;
    number = value === -1 ? Number.NaN : number * 62 + value;
  }
  return number;
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
