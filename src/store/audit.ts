import { timingSafeEqual } from "node:crypto";
import { isObject, type JsonObject } from "../domain/json-object.ts";
import { createKeyDigest, type Peppers } from "../domain/keys/peppers.ts";

/** A change of the control plane, not yet in the chain. */
export interface AuditEntry {
  readonly at: number;
  readonly actor: {
    readonly kind: "session" | "token" | "local" | "system";
    /** User id; undefined for `local` and `system`. */
    readonly id: string | undefined;
    readonly name: string;
  };
  /** Address of the client; undefined without a connection. */
  readonly address: string | undefined;
  readonly requestId: string | undefined;
  /** `<resource>.<verb>`, such as `key.rotate`. */
  readonly action: string;
  readonly subject: { readonly type: string; readonly id: string };
  /** The account it concerns; account holders see the entries of their account. */
  readonly accountId: string | undefined;
  /** Fields before and after the change, without secrets, digests and password hashes. */
  readonly before: AuditFields | undefined;
  readonly after: AuditFields | undefined;
}

/** Plain JSON. */
export type AuditFields = JsonObject;

/** An entry in the chain: each digest covers the entry and the previous digest. */
export interface AuditRecord extends AuditEntry {
  /** 1, 2, 3, ... without gaps. */
  readonly sequence: number;
  /** SHA-256 in hexadecimal; 64 zeros for the first entry. */
  readonly previousDigest: string;
  readonly digest: string;
}

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

/** The position of an entry in the audit and the digest the next one continues from. */
export interface AuditLink {
  readonly sequence: number;
  readonly digest: string;
}

/** The signed ends of the audit at some time, to be stored where database writers cannot reach. */
export interface AuditCheckpoint extends AuditLink {
  /** The first entry that was kept; retention has removed those before it. */
  readonly first: number;
  /** ISO 8601. */
  readonly at: string;
}

/**
 * Formats a checkpoint as one line of JSON, signed with a key derived from the first pepper: write
 * access to the database is not enough to forge it.
 */
export function writeCheckpoint(checkpoint: AuditCheckpoint, peppers: Peppers): string {
  const { at, first, sequence: last, digest } = checkpoint;
  const { mark: pepper } = peppers.first;
  const seal = signatureOf(checkpoint, pepper, peppers)?.toString("hex");
  return JSON.stringify({ at, first, last, digest, pepper, seal });
}

/** Undefined for a checkpoint that another installation wrote. */
export function readCheckpoint(line: string, peppers: Peppers): AuditCheckpoint | undefined {
  const { at, first, last: sequence, digest, pepper, seal } = fieldsOf(line);
  if (typeof at !== "string" || typeof digest !== "string") return undefined;
  if (typeof first !== "number" || typeof sequence !== "number") return undefined;
  if (typeof pepper !== "string" || typeof seal !== "string") return undefined;
  const checkpoint = { at, first, sequence, digest };
  const expected = signatureOf(checkpoint, pepper, peppers);
  const found = Buffer.from(seal, "hex");
  if (expected === undefined || found.length !== expected.length) return undefined;
  return timingSafeEqual(found, expected) ? checkpoint : undefined;
}

/** HMAC-SHA-256; undefined for the mark of an unknown pepper. */
function signatureOf(
  { at, first, sequence, digest }: AuditCheckpoint,
  mark: string,
  peppers: Peppers,
): Buffer | undefined {
  const key = peppers.find(mark)?.digest("seals of the audit");
  if (key === undefined) return undefined;
  return Buffer.from(
    createKeyDigest(key)(JSON.stringify(["checkpoint", at, first, sequence, digest])),
  );
}

function fieldsOf(line: string): JsonObject {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
