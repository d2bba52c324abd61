import { type DatabaseFile, type FileState, isUnchanged, stateOf } from "./database-file.ts";

/** Reads all of a database and returns its damage, undefined: none. Rejects when it cannot. */
export type ExamineDatabase = (path: string) => Promise<string | undefined>;

/**
 * Tracks whether a database is damaged. A broken one may be reopened once its file or content was
 * replaced, and, with an examiner, only if it is sound: the copy may not be complete yet.
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

  /** The damage of the current file; undefined: none, or it cannot be determined. */
  async findDamage(): Promise<string | undefined> {
    return (await this.#lookThrough())?.problem;
  }

  /** Marks the file as broken. Must be called once this process has closed it. */
  noteBroken(): void {
    this.#file.remember();
    this.#broken = stateOf(this.#path);
    this.#sound = undefined;
  }

  /** Whether a broken file may have been repaired. */
  mayOpen(): boolean {
    const now = stateOf(this.#path);
    // Opening reports that the file is gone.
    if (now === undefined || isSame(now, this.#sound)) return true;
    if (isSame(now, this.#broken)) return false;
    if (this.#examine === undefined) return true;
    if (!this.#isExamining) void this.#judge(now);
    return false;
  }

  async #judge(now: FileState): Promise<void> {
    const found = await this.#lookThrough();
    // A file that could not be read, or is still being written, is examined again.
    if (found === undefined || !isSame(now, stateOf(this.#path))) return;
    if (found.problem === undefined) this.#sound = now;
    else this.#broken = now;
  }

  /** Undefined when the file is locked, gone or being examined. */
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
