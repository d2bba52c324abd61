import { timingSafeEqual } from "node:crypto";
import { createKeyDigest, type Peppers } from "../keys/peppers.ts";

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
  const { at, first, last: sequence, digest, pepper, seal } = parseObject(line);
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

function parseObject(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
