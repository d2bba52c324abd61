import { createHash } from "node:crypto";

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
