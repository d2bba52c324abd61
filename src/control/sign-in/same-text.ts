import { timingSafeEqual } from "node:crypto";

/** Compares in a time that does not depend on where two texts differ. */
export function isSameText(left: string, right: string): boolean {
  return isSameBytes(Buffer.from(left), Buffer.from(right));
}

export function isSameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}
