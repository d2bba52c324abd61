import { Secret } from "./keys/secret.ts";

/** Whether two values of plain data are equal, including secrets, which are not printed. */
export function isSameValue(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (!isObject(one) || !isObject(other)) return false;
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
  if (one instanceof Secret) return other instanceof Secret && one.reveal() === other.reveal();
  const ownEntries = entriesOf(one);
  const otherEntries = entriesOf(other);
  if (ownEntries.size !== otherEntries.size) return false;
  for (const [key, value] of ownEntries) {
    if (!otherEntries.has(key) || !isSameValue(value, otherEntries.get(key))) return false;
  }
  return true;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function entriesOf(value: object): ReadonlyMap<unknown, unknown> {
  return value instanceof Map ? value : new Map(Object.entries(value));
}
