import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../../domain/clock.ts";
import type { KeyDigest } from "../../domain/keys/peppers.ts";
import { Coalesced } from "../../domain/waiting/in-parallel.ts";
import type { KeyStore } from "../store.ts";
import { firstSeal, type KeyLine, writeKeyLine } from "./key-lines.ts";

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
