import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { apiKeyPattern } from "../../src/domain/keys/api-key.ts";
import { localAccessFile } from "../../src/control/sign-in/bootstrap/local-access.ts";

/** Texts that must not occur anywhere, and the places where they occurred. */
export class CanarySearch {
  readonly hits: string[] = [];
  /** The number of bytes searched, by place. */
  readonly searchedBytes = new Map<string, number>();
  readonly #canaries = new Map<string, string>();
  #count = 0;

  /** A unique text. */
  make(name: string): string {
    this.#count += 1;
    const text = `xylocanary${this.#count.toString(36)}q${crypto.randomUUID().replaceAll("-", "")}`;
    this.add(name, text);
    return text;
  }

  /** Adds a text of other origin that must not occur anywhere. */
  add(name: string, text: string): void {
    if (text.length < 8) throw new Error(`${name} is too short to be searched for`);
    this.#canaries.set(name, text);
  }

  /** Adds an API key as a whole and its secret part. */
  addApiKey(name: string, text: string): void {
    this.add(name, text);
    this.add(`${name} (secret part)`, text.slice(16, 59));
  }

  get names(): readonly string[] {
    return [...this.#canaries.keys()];
  }

  /** Searches for every canary except names that begin with one of `allowed`. */
  search(place: string, content: string | Uint8Array, allowed: readonly string[] = []): void {
    const bytes = Buffer.from(content);
    this.searchedBytes.set(place, (this.searchedBytes.get(place) ?? 0) + bytes.length);
    for (const [name, text] of this.#canaries) {
      if (allowed.some((prefix) => name.startsWith(prefix))) continue;
      if (bytes.includes(text)) this.hits.push(`${name} in ${place}`);
    }
    const key = apiKeyPattern.exec(bytes.toString("latin1"));
    if (key !== null && !allowed.includes("key")) this.hits.push(`an API key in ${place}`);
  }

  /** Every file below a folder, except the one with the token of this machine. */
  searchFiles(folder: string, exceptions: readonly string[] = []): void {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const isException = [localAccessFile, ...exceptions].includes(basename(entry.name));
      if (!entry.isFile() || isException) continue;
      const path = join(entry.parentPath, entry.name);
      const content = readIfThere(path);
      if (content !== undefined) this.search(path.slice(folder.length + 1), content);
    }
  }
}

/** Undefined for a file that was removed meanwhile, as spools are. */
function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
