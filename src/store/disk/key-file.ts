import { timingSafeEqual } from "node:crypto";
import { rmSync } from "node:fs";
import { type FileHandle, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Clock } from "../../domain/clock.ts";
import { createKeyDigest, type KeyDigest, type Peppers } from "../../domain/keys/peppers.ts";
import { Coalesced } from "../../domain/waiting/coalesced.ts";
import { StorageUnavailable, UnusableDatabase } from "../errors.ts";
import type { KeyChange, KeyChanges, KeyStore } from "../store.ts";

interface KeyFileOptions {
  readonly path: string;
  /** The keys in the database. */
  readonly store: Pick<KeyStore, "loadKeys">;
  readonly clock: Pick<Clock, "now">;
  /** The first seals, all verify: the file may be from before a rotation. */
  readonly peppers: Peppers;
  readonly maxAgeMs: number;
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
  readonly bytes: number;
  /** Size when the file was written anew. */
  readonly anewBytes: number;
}

const nothing: Written = { epoch: 0, at: 0, seal: "", bytes: 0, anewBytes: 0 };

/** How far the clock may have gone back since the file was written. */
const clockToleranceMs = 60_000;

/**
 * The keys of the database, and a copy of them in a file for a start without it. Changes are appended,
 * so that a revocation among a million keys costs one line; a crash leaves at most an incomplete last
 * line.
 */
export class KeyFile implements Pick<KeyStore, "loadKeys"> {
  readonly #options: KeyFileOptions;
  readonly #digest: KeyDigest;
  /** What was read from disk, in pages, until the database answers. */
  #onDisk: readonly KeyLine[] = [];
  readonly #writing = new Coalesced(() => this.#write());
  /** Undefined before the first write, and after a failed one. */
  #written: Written | undefined;
  #isStopped = false;

  constructor(options: KeyFileOptions) {
    this.#options = options;
    this.#digest = sealUnder(options.peppers.first);
  }

  async loadKeys(since: number, limit: number): Promise<KeyChanges> {
    try {
      const page = await this.#options.store.loadKeys(since, limit);
      this.#onDisk = [];
      return page;
    } catch (error) {
      // A database that is the wrong one does not vouch for the keys of the right one.
      if (!(error instanceof StorageUnavailable) || error instanceof UnusableDatabase) throw error;
      if (since === 0) this.#onDisk = await this.#readFile();
      const page = pageOf(this.#onDisk, since, this.#options.clock.now());
      if (page === undefined) throw error;
      return page;
    }
  }

  /** The database has this epoch now. Never rejects. */
  async follow(epoch: number): Promise<void> {
    const { clock, onFailed, onWritten } = this.#options;
    const written = this.#written;
    const isNew = written?.epoch !== epoch || clock.now() - written.at >= renewalMs;
    if (this.#isStopped || !isNew) return;
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
    const { bytes, anewBytes } = this.#written ?? nothing;
    const isLong = bytes - anewBytes > Math.max(leastAppendedBytes, anewBytes);
    if (isLong || !(await this.#append())) await this.#renew();
  }

  /** False without a file, or if the database went back, as a restored one does. */
  async #append(): Promise<boolean> {
    if (this.#written === undefined) return false;
    await using file = await open(this.#options.path, "a", 0o600);
    const written = await this.#writeLines(file, this.#written);
    if (written === undefined) return false;
    this.#written = written;
    return true;
  }

  async #renew(): Promise<void> {
    const { path } = this.#options;
    const draft = `${path}.new`;
    await rm(draft, { force: true });
    let written = nothing;
    {
      await using file = await open(draft, "wx", 0o600);
      written = (await this.#writeLines(file, nothing)) ?? nothing;
    }
    await rename(draft, path);
    await using folder = await open(dirname(path), "r");
    await folder.sync();
    this.#written = { ...written, anewBytes: written.bytes };
  }

  /** Writes all changes since then; undefined if the database went back. */
  async #writeLines(file: FileHandle, since: Written): Promise<Written | undefined> {
    let last = since;
    for await (const line of this.#lines(since.epoch)) {
      if (line.epoch < last.epoch) return undefined;
      const { text, seal } = writeKeyLine(line, last.seal, this.#digest);
      await file.write(text);
      last = { ...last, epoch: line.epoch, at: line.at, seal, bytes: last.bytes + text.length };
    }
    await file.datasync();
    return last;
  }

  async #readFile(): Promise<readonly KeyLine[]> {
    const { path, clock, maxAgeMs, peppers } = this.#options;
    // Without a file there is nothing to start from.
    const text = await readFile(path, "utf8").catch(() => "");
    const read = peppers.all.map((pepper) => readKeyLines(text, sealUnder(pepper)));
    const lines = read.find((each) => each.length > 0) ?? [];
    const ageMs = clock.now() - (lines.at(-1)?.at ?? -Infinity);
    return ageMs <= maxAgeMs && ageMs >= -clockToleranceMs ? lines : [];
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

/** Changes of keys in a file, and until when there were no others. */
interface KeyLine {
  /** When the database was read, in milliseconds since the epoch. */
  readonly at: number;
  /** Epoch of the last change. */
  readonly epoch: number;
  readonly changes: readonly KeyChange[];
}

/** The seals of a file are under a pepper, which is not in the database. */
function sealUnder(pepper: Peppers["first"]): KeyDigest {
  return createKeyDigest(pepper.digest("seal of the keys on disk"));
}

/**
 * Writes one line: JSON and a seal over it and all lines before. What only the control plane shows
 * is left out.
 */
function writeKeyLine(line: KeyLine, previous: string, digest: KeyDigest) {
  const json = JSON.stringify(line, (name, value: unknown) => {
    if (name === "ended" || name === "note") return name === "note" ? "" : undefined;
    return value instanceof Uint8Array ? value.toBase64() : value;
  });
  const seal = sealOf(json, previous, digest);
  return { text: `${json}\t${seal}\n`, seal };
}

/** Reads the lines up to the first one that is incomplete or that somebody else has written. */
function readKeyLines(text: string, digest: KeyDigest): readonly KeyLine[] {
  const lines: KeyLine[] = [];
  let previous = nothing.seal;
  for (const line of text.split("\n")) {
    const [json = "", seal = ""] = line.split("\t");
    if (!isSame(seal, sealOf(json, previous, digest))) break;
    lines.push(parseLine(json));
    previous = seal;
  }
  return lines;
}

/** Nobody else can have sealed the line. */
function parseLine(json: string): KeyLine;
function parseLine(json: string): unknown {
  const line: unknown = JSON.parse(json, (name, value: unknown) =>
    name === "digest" ? Uint8Array.fromBase64(String(value)) : value,
  );
  return line;
}

function sealOf(json: string, previous: string, digest: KeyDigest): string {
  return Buffer.from(digest(`${previous}\t${json}`)).toString("hex");
}

function isSame(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

/** Undefined if there is nothing after `since`. */
function pageOf(lines: readonly KeyLine[], since: number, now: number): KeyChanges | undefined {
  const last = lines.at(-1);
  const later = lines.filter(({ epoch, changes }) => epoch > since && changes.length > 0);
  const [page] = later;
  if (last === undefined) return undefined;
  const ageMs = Math.max(0, now - last.at);
  if (page !== undefined) {
    return { changes: page.changes, epoch: page.epoch, hasMore: later.length > 1, ageMs };
  }
  return since === 0 ? { changes: [], epoch: 0, hasMore: false, ageMs } : undefined;
}

interface OpenKeyFileOptions extends Omit<KeyFileOptions, "path" | "maxAgeMs"> {
  readonly config: {
    readonly auth: { readonly keepsSnapshot: boolean; readonly snapshotMaxAgeMs: number };
    readonly dataDir: string;
    readonly storage: { readonly backend: "sqlite" | "postgres" };
  };
}

/** Undefined if the database is on this machine, or nothing may be kept. */
export function openKeyFile({ config, ...parts }: OpenKeyFileOptions): KeyFile | undefined {
  const { auth, dataDir, storage } = config;
  if (storage.backend === "sqlite") return undefined;
  const path = join(dataDir, "keys");
  if (auth.keepsSnapshot) return new KeyFile({ ...parts, path, maxAgeMs: auth.snapshotMaxAgeMs });
  rmSync(path, { force: true });
  return undefined;
}
