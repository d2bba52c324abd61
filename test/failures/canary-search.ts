import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { apiKeyPattern } from "../../src/domain/keys/api-key.ts";
import { localAccessFile } from "../../src/control/sign-in/bootstrap/local-access.ts";

/** Texts that must turn up nowhere, and where they turned up. */
export class CanarySearch {
  readonly hits: string[] = [];
  /** Bytes that were searched, by place. */
  readonly searchedBytes = new Map<string, number>();
  readonly #canaries = new Map<string, string>();
  #count = 0;

  /** A text that is found nowhere else. */
  make(name: string): string {
    this.#count += 1;
    const text = `xylocanary${this.#count.toString(36)}q${crypto.randomUUID().replaceAll("-", "")}`;
    this.add(name, text);
    return text;
  }

  /** A text that came from elsewhere and is to be found nowhere. */
  add(name: string, text: string): void {
    if (text.length < 8) throw new Error(`${name} is too short to be searched for`);
    this.#canaries.set(name, text);
  }

  /** An API key: the whole, and the part that is secret. */
  addApiKey(name: string, text: string): void {
    this.add(name, text);
    this.add(`${name} (secret part)`, text.slice(16, 59));
  }

  get names(): readonly string[] {
    return [...this.#canaries.keys()];
  }

  /** Looks for every canary but those whose names begin with one of `allowed`. */
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

  /** Every file below a folder, but the one that exists to hold the token of this machine. */
  searchFiles(folder: string, exceptions: readonly string[] = []): void {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const isException = [localAccessFile, ...exceptions].includes(basename(entry.name));
      if (!entry.isFile() || isException) continue;
      const path = join(entry.parentPath, entry.name);
      this.search(path.slice(folder.length + 1), readFileSync(path));
    }
  }
}
