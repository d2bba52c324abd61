import { sizeOfReply, type KeptReply, type ReplyStore } from "../store.ts";

/** Replies that end with the process. */
export class MemoryReplyStore implements ReplyStore {
  readonly #replies = new Map<string, KeptReply>();
  readonly #isErased: (accountId: string) => boolean;

  constructor(isErased: (accountId: string) => boolean = () => false) {
    this.#isErased = isErased;
  }

  find(id: string): Promise<KeptReply | undefined> {
    return Promise.resolve(this.#replies.get(id));
  }

  put(reply: KeptReply, limitBytes: number): Promise<void> {
    if (this.#isErased(reply.accountId)) return Promise.resolve();
    this.#replies.delete(reply.id);
    const size = sizeOfReply(reply);
    for (const { id } of this.#byAge()) {
      if (this.#heldBytes() + size <= limitBytes) break;
      this.#replies.delete(id);
    }
    this.#replies.set(reply.id, reply);
    return Promise.resolve();
  }

  prune(before: number, limit: number): Promise<number> {
    const old = this.#byAge()
      .filter(({ keptAt, accountId }) => keptAt < before || this.#isErased(accountId))
      .slice(0, limit);
    for (const { id } of old) this.#replies.delete(id);
    return Promise.resolve(old.length);
  }

  #heldBytes(): number {
    return [...this.#replies.values()].reduce((sum, reply) => sum + sizeOfReply(reply), 0);
  }

  #byAge(): readonly KeptReply[] {
    return [...this.#replies.values()].toSorted((one, other) => one.keptAt - other.keptAt);
  }
}
