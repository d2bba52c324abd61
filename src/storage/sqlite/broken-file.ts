import { type DatabaseFile, type FileState, isUnchanged, stateOf } from "./database-file.ts";

/** Looks through a database that nobody may be using; what is wrong with it, undefined if nothing. */
export type ExamineDatabase = (path: string) => Promise<string | undefined>;

/**
 * Knows when a database that was found broken may be opened again: once there is another file, or
 * other content, in its place. Where databases are examined, that must be sound as well, or rows
 * would be written to what is still being copied.
 */
export class BrokenFile {
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

  /** Once nothing of this process has it open. */
  note(): void {
    this.#file.remember();
    this.#broken = stateOf(this.#path);
    this.#sound = undefined;
  }

  mayOpen(): boolean {
    const now = stateOf(this.#path);
    // That it is gone is for whoever opens it to say.
    if (now === undefined || isSound(now, this.#sound)) return true;
    if (this.#broken !== undefined && isUnchanged(now, this.#broken)) return false;
    if (this.#examine === undefined) return true;
    void this.#judge(now, this.#examine);
    return false;
  }

  async #judge(now: FileState, examine: ExamineDatabase): Promise<void> {
    if (this.#isExamining) return;
    this.#isExamining = true;
    try {
      this.#file.prepare();
      const problem = await examine(this.#path);
      const after = stateOf(this.#path);
      // Somebody still writes to it: it is looked at again.
      if (after === undefined || !isUnchanged(after, now)) return;
      if (problem === undefined) this.#sound = now;
      else this.#broken = now;
    } catch {
      // It could not be read: it is looked at again.
    } finally {
      this.#isExamining = false;
    }
  }
}

function isSound(now: FileState, sound: FileState | undefined): boolean {
  return sound !== undefined && isUnchanged(now, sound);
}
