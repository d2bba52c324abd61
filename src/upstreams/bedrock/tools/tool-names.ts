import { createHash } from "node:crypto";

/**
 * Names of tools as they are sent. The provider accepts `[a-zA-Z0-9_-]{1,64}`, but callers also use
 * dots, and histories contain any name that a model made up. One request uses one instance for its
 * tools, its history and its choice, so that a name is the same everywhere.
 */
export class ToolNames {
  readonly #sent = new Map<string, string>();
  readonly #originals = new Map<string, string>();
  readonly #renamed = new Map<string, string>();

  /** The caller's names by the names that were sent, if they differ. */
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
/** Room for the hash and its separator. */
const keptLength = 64 - hashLength - 1;

/** Keeps the readable part of a name, by which models choose tools. The hash keeps names unique. */
function rename(name: string, attempt: number): string {
  const readable = name.slice(0, keptLength).replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  const hash = createHash("sha256").update(`${attempt}:${name}`).digest("hex");
  return `${readable}_${hash.slice(0, hashLength)}`;
}
