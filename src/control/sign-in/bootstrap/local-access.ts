import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { type RandomBytes, randomBase62 } from "../../../domain/keys/base62.ts";
import { isSameText, sha256 } from "../sessions/sessions.ts";

export const localAccessFile = "admin-access.json";

const fileSchema = z.object({
  url: z.string(),
  token: z.string(),
  pid: z.int().optional(),
  /** Milliseconds since the epoch. */
  startedAt: z.number().optional(),
});

/** Address of a running gateway's control plane and a token for it. */
export type LocalAccessFile = z.infer<typeof fileSchema>;

export interface LocalAccessOptions {
  readonly dataDir: string;
  /** Where the control plane listens, such as `http://127.0.0.1:8081`. */
  readonly url: string;
  /** The process whose end ends the gateway. */
  readonly pid: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly random: RandomBytes;
}

/** A file in the data directory with a token that is valid while the process runs. */
export interface LocalAccess {
  /** Whether a text is this process's token. */
  isToken(text: string): boolean;
  /** Writes the file, replacing that of an earlier process. */
  write(): Promise<void>;
  /** Removes the file, unless another process has written its own since. */
  remove(): Promise<void>;
}

export function createLocalAccess(options: LocalAccessOptions): LocalAccess {
  const { dataDir, url, pid, startedAt, random } = options;
  const path = join(dataDir, localAccessFile);
  const token = `slc-local_${randomBase62(43, random)}`;
  const digest = sha256(token);
  return {
    isToken: (text) => isSameText(sha256(text), digest),
    async write() {
      await mkdir(dataDir, { recursive: true });
      // Unique, so that two starting processes do not write into one file.
      const draft = `${path}.${randomBase62(8, random)}`;
      try {
        const file = await open(draft, "wx", 0o600);
        try {
          await file.writeFile(`${JSON.stringify({ url, token, pid, startedAt })}\n`);
        } finally {
          await file.close();
        }
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
    async remove() {
      const found = await readLocalAccess(dataDir);
      if (found !== undefined && isSameText(sha256(found.token), digest)) {
        await rm(path, { force: true });
      }
    },
  };
}

/** The file of a running gateway; undefined when there is none, or it is broken. */
export async function readLocalAccess(dataDir: string): Promise<LocalAccessFile | undefined> {
  try {
    const text = await readFile(join(dataDir, localAccessFile), "utf8");
    return fileSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
