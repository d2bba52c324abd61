import type { AuditEntry } from "./audit.ts";

/** The digest before the first entry. */
export const firstDigest = "0".repeat(64);

/**
 * SHA-256, in hexadecimal, of the canonical JSON of `[previousDigest, sequence, entry]`: sorted
 * names, no white space, no undefined fields.
 */
export function auditDigest(entry: AuditEntry, sequence: number, previousDigest: string): string {
  const { at, actor, address, requestId, action, subject, accountId, before, after } = entry;
  const fields = { at, actor, address, requestId, action, subject, accountId, before, after };
  const text = canonicalJson([previousDigest, sequence, fields]);
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

/** The same text for the same data, regardless of field order. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null);
  const parts = Object.entries(value)
    .filter(([, part]) => part !== undefined)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, part]) => `${JSON.stringify(name)}:${canonicalJson(part)}`);
  return `{${parts.join(",")}}`;
}
