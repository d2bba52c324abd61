import type { AuditSeals } from "./audit-seals.ts";

/** The position of an entry in the audit and the digest the next one continues from. */
export interface AuditLink {
  /** Number of entries up to here. */
  readonly sequence: number;
  readonly digest: string;
}

/** The signed end of the audit at some time, to be stored where database writers cannot reach. */
export interface AuditCheckpoint extends AuditLink {
  /** ISO 8601. */
  readonly at: string;
}

/** Formats a checkpoint as one line of JSON, sealed under the first pepper. */
export function writeCheckpoint({ at, ...link }: AuditCheckpoint, seals: AuditSeals): string {
  const { sequence, digest } = link;
  const { pepper, seal } = seals.make("checkpoint", [at, sequence, digest]);
  return JSON.stringify({ at, entries: sequence, digest, pepper, seal });
}

/** Undefined for a checkpoint that another installation wrote. */
export function readCheckpoint(line: string, seals: AuditSeals): AuditCheckpoint | undefined {
  const fields = parseObject(line);
  const { at, entries: sequence, digest, pepper, seal } = fields;
  if (typeof at !== "string" || typeof digest !== "string") return undefined;
  if (typeof sequence !== "number" || typeof pepper !== "string" || typeof seal !== "string") {
    return undefined;
  }
  const isOwn = seals.isRight("checkpoint", [at, sequence, digest], { pepper, seal });
  return isOwn ? { at, sequence, digest } : undefined;
}

function parseObject(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
