import { timingSafeEqual } from "node:crypto";
import { createKeyDigest, type KeyDigest, type Peppers } from "../../domain/keys/peppers.ts";
import type { KeyChange, KeyStore, LiveKey } from "../store.ts";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../../domain/clock.ts";
import { Coalesced } from "../../domain/waiting/in-parallel.ts";

export interface KeyFileOptions {
  readonly path: string;
  readonly store: Pick<KeyStore, "loadKeys">;
  readonly clock: Pick<Clock, "now">;
  readonly digest: KeyDigest;
  readonly onFailed: (error: unknown) => void;
  readonly onWritten: () => void;
}

const pageKeys = 500;
/** How often a file without changes says that there are none. */
const renewalMs = 30_000;
/** Appended bytes after which the file is written anew, if that is more than its own size. */
const leastAppendedBytes = 1_000_000;

interface Written {
  readonly epoch: number;
  readonly at: number;
  readonly seal: string;
  /** Size when the file was written anew, and what was appended since. */
  readonly bytes: number;
  readonly appendedBytes: number;
}

/**
 * Keeps the live keys in a file for a start without the database. Changes are appended, so that a
 * revocation among a million keys costs one line; a crash leaves at most an incomplete last line.
 */
export class KeyFile {
  readonly #options: KeyFileOptions;
  readonly #writing = new Coalesced(() => this.#write());
  /** Undefined before the first write, and after a failed one. */
  #written: Written | undefined;
  #isStopped = false;

  constructor(options: KeyFileOptions) {
    this.#options = options;
  }

  /** The database has this epoch now. Never rejects. */
  async follow(epoch: number): Promise<void> {
    const { clock, onFailed, onWritten } = this.#options;
    const { epoch: known, at } = this.#written ?? { epoch: -1, at: 0 };
    if (this.#isStopped || (known === epoch && clock.now() - at < renewalMs)) return;
    try {
      await this.#writing.run();
      onWritten();
    } catch (error) {
      this.#written = undefined;
      onFailed(error);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#writing.idle();
  }

  async #write(): Promise<void> {
    const written = this.#written;
    const isLong =
      written !== undefined && written.appendedBytes > Math.max(leastAppendedBytes, written.bytes);
    if (written === undefined || isLong || !(await this.#append(written))) await this.#renew();
  }

  /** False if the database went back, as a restored one does. */
  async #append(written: Written): Promise<boolean> {
    const file = await open(this.#options.path, "a", 0o600);
    try {
      let last = written;
      for await (const line of this.#lines(written.epoch)) {
        if (line.epoch < last.epoch) return false;
        const { text, seal } = writeKeyLine(line, last.seal, this.#options.digest);
        await file.write(text);
        const appendedBytes = last.appendedBytes + text.length;
        last = { ...last, epoch: line.epoch, at: line.at, seal, appendedBytes };
      }
      await file.datasync();
      this.#written = last;
      return true;
    } finally {
      await file.close();
    }
  }

  async #renew(): Promise<void> {
    const { path, digest } = this.#options;
    const draft = `${path}.new`;
    await rm(draft, { force: true });
    const file = await open(draft, "wx", 0o600);
    let last: Written = { epoch: 0, at: 0, seal: firstSeal, bytes: 0, appendedBytes: 0 };
    try {
      for await (const line of this.#lines(0)) {
        const { text, seal } = writeKeyLine(line, last.seal, digest);
        await file.write(text);
        last = { ...last, epoch: line.epoch, at: line.at, seal, bytes: last.bytes + text.length };
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
    await syncFolder(dirname(path));
    this.#written = last;
  }

  /** The changes since an epoch; at least one line. */
  async *#lines(since: number): AsyncGenerator<KeyLine> {
    const { store, clock } = this.#options;
    let epoch = since;
    for (let hasMore = true; hasMore;) {
      // Whatever changes during the read is in a later line.
      const at = clock.now();
      const page = await store.loadKeys(epoch, pageKeys);
      ({ epoch, hasMore } = page);
      yield { at, epoch, changes: page.changes };
    }
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

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
