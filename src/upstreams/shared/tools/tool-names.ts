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

/**
 * Ids of tool calls as they are sent. Callers choose theirs freely, and some start again in every
 * turn, but the provider requires its own alphabet and unique ids in a conversation.
 */
export class ToolIds {
  readonly #used = new Set<string>();
  /** The attempt at which a repeated id of the caller's starts. */
  readonly #nextAttempts = new Map<string, number>();
  readonly #isNineCharacters: boolean;

  constructor(isNineCharacters: boolean) {
    this.#isNineCharacters = isNineCharacters;
  }

  /** The id of one more call, and of its result. */
  assign(id: string): string {
    const legal = this.#isNineCharacters ? nineCharacters : legalId;
    let attempt = this.#nextAttempts.get(id) ?? 0;
    let sent = attempt === 0 && legal.test(id) ? id : this.#derive(id, attempt);
    while (this.#used.has(sent)) {
      attempt += 1;
      sent = this.#derive(id, attempt);
    }
    this.#nextAttempts.set(id, attempt + 1);
    this.#used.add(sent);
    return sent;
  }

  /** The same request yields the same ids, so that the provider can cache its prompt. */
  #derive(id: string, attempt: number): string {
    const hash = createHash("sha256").update(`${attempt}:${id}`).digest("hex");
    return this.#isNineCharacters ? hash.slice(0, 9) : `call_${hash.slice(0, 24)}`;
  }
}

const legalId = /^[a-zA-Z0-9_-]{1,64}$/;
/** The ids that Mistral's models accept in a history. */
const nineCharacters = /^[a-zA-Z0-9]{9}$/;
