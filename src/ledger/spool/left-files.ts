import { existsSync, statSync } from "node:fs";
import { listProcessFolders } from "./process-folder.ts";
import { listSegments, whyUnreadable } from "./segment-files.ts";

interface LeftFile {
  readonly path: string;
  readonly bytes: number;
}

/** Files that other processes had in the spool when this one started, until ingest removes them. */
export class LeftFiles {
  /** The files of each folder, oldest first. */
  readonly #folders: LeftFile[][] = [];
  bytes = 0;

  /** Throws when the folder of all spools cannot be read. */
  constructor(root: string) {
    for (const folder of [root, ...listProcessFolders(root)]) this.#folders.push(sizesIn(folder));
    for (const file of this.#folders.flat()) this.bytes += file.bytes;
  }

  /** Drops files that are gone; ingest removes the files of a folder in order. */
  followRemovals(): void {
    for (const files of this.#folders) {
      for (let [first] = files; first && !existsSync(first.path); [first] = files) {
        files.shift();
        this.bytes -= first.bytes;
      }
    }
  }
}

function sizesIn(folder: string): LeftFile[] {
  return listSegments(folder).flatMap(({ path }) => {
    const size = whyUnreadable(path) === undefined ? sizeOf(path) : undefined;
    return size === undefined ? [] : [{ path, bytes: size }];
  });
}

/** Undefined for a file that ingest has removed meanwhile. */
function sizeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.size;
}
