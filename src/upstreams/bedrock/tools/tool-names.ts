import { createHash } from "node:crypto";

/**
 * Names of tools as they are sent: the provider takes `[a-zA-Z0-9_-]{1,64}`, callers also write
 * dots, and histories hold whatever a model made up. One request uses one of these for its tools,
 * its history and its choice, so that a name is the same everywhere.
 */
export class ToolNames {
  readonly #sent = new Map<string, string>();
  readonly #originals = new Map<string, string>();
  readonly #renamed = new Map<string, string>();

  /** The callers' names by the sent ones, for those that differ. */
  get renamed(): ReadonlyMap<string, string> {
    return this.#renamed;
  }

  sentNameOf(name: string): string {
    const known = this.#sent.get(name);
    if (known !== undefined) return known;
    let sent = legalName.test(name) ? name : rename(name, 0);
    for (let attempt = 1; this.#originals.has(sent); attempt += 1) sent = rename(name, attempt);
    this.#sent.set(name, sent);
    this.#originals.set(sent, name);
    if (sent !== name) this.#renamed.set(sent, name);
    return sent;
  }
}

const legalName = /^[a-zA-Z0-9_-]{1,64}$/;
const hashLength = 8;
/** Leaves room for the hash and what joins it. */
const keptLength = 64 - hashLength - 1;

/** Keeps what can be read of a name: models choose tools by it. The hash tells alike ones apart. */
function rename(name: string, attempt: number): string {
  const readable = name.slice(0, keptLength).replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  const hash = createHash("sha256").update(`${attempt}:${name}`).digest("hex");
  return `${readable}_${hash.slice(0, hashLength)}`;
}
