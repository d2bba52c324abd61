import { timingSafeEqual } from "node:crypto";
import { createKeyDigest, type KeyDigest, type Peppers } from "../../domain/keys/peppers.ts";
import type { KeyChange, LiveKey } from "../store.ts";

/** Changes of keys in a file, and until when there were no others. */
export interface KeyLine {
  /** When the database was read, in milliseconds since the epoch. */
  readonly at: number;
  /** Epoch of the last change. */
  readonly epoch: number;
  readonly changes: readonly KeyChange[];
}

/** The seals of a file, under a pepper, which is not in the database. */
export function keyFileSeal(pepper: Peppers["first"]): KeyDigest {
  return createKeyDigest(pepper.digest("seal of the keys on disk"));
}

/** What the first line is sealed with. */
export const firstSeal = "";

/**
 * Writes one line: JSON and a seal over it and all lines before. What only the control plane shows
 * is left out.
 */
export function writeKeyLine(line: KeyLine, previous: string, digest: KeyDigest) {
  const { at, epoch, changes } = line;
  const json = JSON.stringify({ at, epoch, changes: changes.map(writtenChange) });
  const seal = sealOf(json, previous, digest);
  return { text: `${json}\t${seal}\n`, seal };
}

/** Reads the lines up to the first one that is incomplete or that somebody else has written. */
export function readKeyLines(text: string, digest: KeyDigest): readonly KeyLine[] {
  const lines: KeyLine[] = [];
  let previous = firstSeal;
  for (const line of text.split("\n")) {
    const [json = "", seal = ""] = line.split("\t");
    if (!isSame(seal, sealOf(json, previous, digest))) break;
    const { at, epoch, changes } = parseLine(json);
    lines.push({ at, epoch, changes: changes.map(readChange) });
    previous = seal;
  }
  return lines;
}

/** Nobody else can have sealed the line. */
function parseLine(json: string): WrittenLine;
function parseLine(json: string): unknown {
  const line: unknown = JSON.parse(json);
  return line;
}

interface WrittenLine extends Omit<KeyLine, "changes"> {
  readonly changes: readonly WrittenChange[];
}

interface WrittenChange {
  readonly keyId: string;
  readonly live?: Omit<LiveKey, "secrets"> & { readonly secrets: readonly WrittenSecret[] };
}

type WrittenSecret = Omit<LiveKey["secrets"][number], "digest"> & { readonly digest: string };

function writtenChange({ keyId, live }: KeyChange): WrittenChange {
  if (live === undefined) return { keyId };
  const secrets = live.secrets.map((secret) => ({
    ...secret,
    digest: Buffer.from(secret.digest).toString("base64"),
  }));
  return { keyId, live: { ...live, key: { ...live.key, note: "" }, secrets } };
}

function readChange({ keyId, live }: WrittenChange): KeyChange {
  if (live === undefined) return { keyId, live: undefined };
  const secrets = live.secrets.map((secret) => ({
    ...secret,
    digest: new Uint8Array(Buffer.from(secret.digest, "base64")),
  }));
  return { keyId, live: { ...live, secrets } };
}

function sealOf(json: string, previous: string, digest: KeyDigest): string {
  return Buffer.from(digest(`${previous}\t${json}`)).toString("hex");
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}
