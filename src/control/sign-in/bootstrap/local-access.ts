import { readFileSync } from "node:fs";
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
  /** The process whose end ends the gateway. */
  readonly pid: number;
  readonly random: RandomBytes;
}

/**
 * A file in the data directory with a token that is valid while the gateway runs, whichever of its
 * processes leads.
 */
export interface LocalAccess {
  isToken(text: string): boolean;
  /**
   * Writes the file, replacing that of an earlier process. `url`: where the control plane listens;
   * `startedAt`: milliseconds since the epoch.
   */
  write(leader: { readonly url: string; readonly startedAt: number }): Promise<void>;
  /** Removes the file, unless another process has written its own since. */
  remove(): Promise<void>;
}

export function createLocalAccess({ dataDir, pid, random }: LocalAccessOptions): LocalAccess {
  const path = join(dataDir, localAccessFile);
  const before = readBefore(path);
  const token = before?.pid === pid ? before.token : `slc-local_${randomBase62(43, random)}`;
  const digest = sha256(token);
  let written: string | undefined;
  return {
    isToken: (text) => isSameText(sha256(text), digest),
    async write({ url, startedAt }) {
      const text = `${JSON.stringify({ url, token, pid, startedAt })}\n`;
      await mkdir(dataDir, { recursive: true });
      // Unique, so that two starting processes do not write into one file.
      const draft = `${path}.${randomBase62(8, random)}`;
      try {
        const file = await open(draft, "wx", 0o600);
        try {
          await file.writeFile(text);
        } finally {
          await file.close();
        }
        await rename(draft, path);
        written = text;
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
    async remove() {
      if (written === undefined) return;
      const found = await readFile(path, "utf8").catch(() => undefined);
      if (found === written) await rm(path, { force: true });
    },
  };
}

/** The file of a running gateway; undefined when there is none, or it is broken. */
export async function readLocalAccess(dataDir: string): Promise<LocalAccessFile | undefined> {
  try {
    return parse(await readFile(join(dataDir, localAccessFile), "utf8"));
  } catch {
    return undefined;
  }
}

/** At once: the listener answers as soon as it has its address. */
function readBefore(path: string): LocalAccessFile | undefined {
  try {
    return parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

function parse(text: string): LocalAccessFile | undefined {
  return fileSchema.safeParse(JSON.parse(text)).data;
}
