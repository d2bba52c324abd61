import { appendFile, open } from "node:fs/promises";
import type { CheckpointFile } from "./audit-checkpoint-job.ts";

/** Longer than any line. */
const tailBytes = 4_096;

/** An append-only file with one checkpoint per line, the newest last. */
export function openCheckpointFile(path: string): CheckpointFile {
  return {
    append: (line) => appendFile(path, `${line}\n`, { mode: 0o600, flush: true }),
    async lastLine() {
      const tail = await readTail(path);
      return tail?.split("\n").findLast((line) => line.trim() !== "");
    },
  };
}

async function readTail(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path, "r");
    const { size } = await file.stat();
    const start = Math.max(0, size - tailBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), { position: start });
    return buffer.toString("utf8", 0, bytesRead);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
