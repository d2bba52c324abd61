import { statSync } from "node:fs";
import { oddKind } from "../../domain/chat/file-kind.ts";

/**
 * Checks the database file and the files SQLite keeps beside it. Fails at once, since a FIFO would
 * block SQLite and nothing replaces odd files meanwhile.
 */
export function refuseOddFiles(path: string): void {
  for (const ending of ["", "-journal", "-wal", "-shm"]) {
    const stats = statSync(`${path}${ending}`, { throwIfNoEntry: false });
    const odd = stats === undefined ? undefined : oddKind(stats);
    if (odd === undefined) continue;
    throw new Error(`storage.url leads to ${path}${ending}, which is ${odd}; it must be a file`);
  }
}
