import type { JsonRecord } from "../read-json.ts";

/** Makes every count ten times too high, so that a meter that trusts it is obvious. */
export function inflatedUsage(usage: JsonRecord): JsonRecord {
  return Object.fromEntries(
    Object.entries(usage).map(([key, value]) => [
      key,
      typeof value === "number" ? value * 10 + 10 : value,
    ]),
  );
}
