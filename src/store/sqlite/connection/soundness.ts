import { type DatabaseFile, type FileState, isUnchanged, stateOf } from "./database-file.ts";

/** Reads all of a database; what is wrong with it, undefined if nothing. Rejects when it cannot. */
export type ExamineDatabase = (path: string) => Promise<string | undefined>;

/**
 * Knows whether a database is damaged, and when one that was found broken may be opened again: once
 * there is another file, or other content, in its place. Where databases are examined, that must be
 * sound as well, or rows would be written to what is still being copied.
 */
export class Soundness {
  readonly #path: string;
  readonly #file: DatabaseFile;
  readonly #examine: ExamineDatabase | undefined;
  #broken: FileState | undefined;
  #sound: FileState | undefined;
  #isExamining = false;

  constructor(path: string, file: DatabaseFile, examine: ExamineDatabase | undefined) {
    this.#path = path;
    this.#file = file;
    this.#examine = examine;
  }

  /** What is wrong with the file as it is; undefined when nothing, or nothing that can be told. */
  async findDamage(): Promise<string | undefined> {
    return (await this.#lookThrough())?.problem;
  }

  /** The file is broken. To be told once nothing of this process has it open. */
  noteBroken(): void {
    this.#file.remember();
    this.#broken = stateOf(this.#path);
    this.#sound = undefined;
  }

  /** Whether a file that was broken may have been mended. */
  mayOpen(): boolean {
    const now = stateOf(this.#path);
    // Opening it says that it is gone.
    if (now === undefined || isSame(now, this.#sound)) return true;
    if (isSame(now, this.#broken)) return false;
    if (this.#examine === undefined) return true;
    if (!this.#isExamining) void this.#judge(now);
    return false;
  }

  async #judge(now: FileState): Promise<void> {
    const found = await this.#lookThrough();
    // What could not be read, or is still written to, is looked at again.
    if (found === undefined || !isSame(now, stateOf(this.#path))) return;
    if (found.problem === undefined) this.#sound = now;
    else this.#broken = now;
  }

  /** Undefined when it is locked, or gone, or being looked through. */
  async #lookThrough(): Promise<{ readonly problem: string | undefined } | undefined> {
    if (this.#examine === undefined || this.#isExamining) return undefined;
    this.#isExamining = true;
    try {
      this.#file.prepare();
      return { problem: await this.#examine(this.#path) };
    } catch {
      return undefined;
    } finally {
      this.#isExamining = false;
    }
  }
}

function isSame(one: FileState, other: FileState | undefined): boolean {
  return other !== undefined && isUnchanged(one, other);
}
