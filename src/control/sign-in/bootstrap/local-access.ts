import { readFileSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
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
export class LocalAccess {
  readonly #options: LocalAccessOptions;
  readonly #path: string;
  readonly #token: string;
  readonly #digest: string;
  #written: string | undefined;

  constructor(options: LocalAccessOptions) {
    const { dataDir, pid, random } = options;
    this.#options = options;
    this.#path = join(dataDir, localAccessFile);
    const before = readLocalAccess(dataDir);
    this.#token = before?.pid === pid ? before.token : `slc-local_${randomBase62(43, random)}`;
    this.#digest = sha256(this.#token);
  }

  isToken(text: string): boolean {
    return isSameText(sha256(text), this.#digest);
  }

  /** Writes the file, replacing that of an earlier process. `url`: of the control plane. */
  async write({ url, startedAt }: Pick<LocalAccessFile, "url" | "startedAt">): Promise<void> {
    const { dataDir, pid, random } = this.#options;
    const text = `${JSON.stringify({ url, token: this.#token, pid, startedAt })}\n`;
    await mkdir(dataDir, { recursive: true });
    // Unique, so that two starting processes do not write into one file.
    const draft = `${this.#path}.${randomBase62(8, random)}`;
    try {
      await writeFile(draft, text, { flag: "wx", mode: 0o600 });
      await rename(draft, this.#path);
      this.#written = text;
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  /** Removes the file, unless another process has written its own since. */
  async remove(): Promise<void> {
    if (this.#written === undefined) return;
    const found = await readFile(this.#path, "utf8").catch(() => undefined);
    if (found === this.#written) await rm(this.#path, { force: true });
  }
}

/** The file of a running gateway; undefined when there is none, or it is broken. */
export function readLocalAccess(dataDir: string): LocalAccessFile | undefined {
  try {
    const text = readFileSync(join(dataDir, localAccessFile), "utf8");
    return fileSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
