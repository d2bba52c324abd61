import { sizeOfReply, type KeptReply, type ReplyStore } from "../../src/store/store.ts";

/** Replies in memory. */
export class MemoryReplyStore implements ReplyStore {
  readonly #replies = new Map<string, KeptReply>();
  readonly #isErased: (accountId: string) => boolean;

  constructor(isErased: (accountId: string) => boolean = () => false) {
    this.#isErased = isErased;
  }

  find(id: string): Promise<KeptReply | undefined> {
    return Promise.resolve(this.#replies.get(id));
  }

  put(reply: KeptReply, limitBytes: number): Promise<number> {
    if (this.#isErased(reply.accountId)) return Promise.resolve(0);
    this.#replies.set(reply.id, reply);
    let removed = 0;
    while (sumOf(this.#replies.values()) > limitBytes) {
      const oldest = this.#oldestOfLargest(reply);
      if (oldest === undefined) break;
      this.#replies.delete(oldest.id);
      removed += 1;
    }
    return Promise.resolve(removed);
  }

  prune(before: number, limit: number): Promise<number> {
    const old = this.#byAge()
      .filter(({ keptAt, accountId }) => keptAt < before || this.#isErased(accountId))
      .slice(0, limit);
    for (const { id } of old) this.#replies.delete(id);
    return Promise.resolve(old.length);
  }

  /** The account with most replies, if it has more than the new reply's account. */
  #oldestOfLargest(added: KeptReply): KeptReply | undefined {
    const shares = Map.groupBy(this.#byAge(), ({ accountId }) => accountId);
    const largest = [...shares.values()]
      .filter((share) => share.some(({ id }) => id !== added.id))
      .toSorted((one, other) => sumOf(other) - sumOf(one))[0];
    return largest?.find(({ id }) => id !== added.id);
  }

  #byAge(): readonly KeptReply[] {
    return [...this.#replies.values()].toSorted((one, other) => one.keptAt - other.keptAt);
  }
}

function sumOf(replies: Iterable<KeptReply>): number {
  return [...replies].reduce((sum, reply) => sum + sizeOfReply(reply), 0);
}
