import type { Clock } from "../../src/domain/clock.ts";
import {
  doubtMs,
  mostDoubts,
  sizeOfReply,
  type AnsweredClaim,
  type ClaimAnswer,
  type HeldClaim,
  type KeptReply,
  type ReplyStore,
  type WantedClaim,
} from "../../src/store/store.ts";

interface MemoryReplyStoreOptions {
  readonly isErased?: (accountId: string) => boolean;
  readonly clock?: Pick<Clock, "now">;
}

interface Claim {
  readonly holder: string;
  readonly requestDigest: string;
  doubts: number;
  askedAt: number;
}

/** Claims and replies in memory. */
export class MemoryReplyStore implements ReplyStore {
  readonly #replies = new Map<string, KeptReply>();
  readonly #claims = new Map<string, Claim>();
  readonly #isErased: (accountId: string) => boolean;
  readonly #now: () => number;

  constructor({ isErased = () => false, clock }: MemoryReplyStoreOptions = {}) {
    this.#isErased = isErased;
    this.#now = () => clock?.now() ?? 0;
  }

  /** Calls that somebody makes. */
  get claims(): number {
    return this.#claims.size;
  }

  claim(wanted: WantedClaim): Promise<ClaimAnswer> {
    return Promise.resolve(this.#claim(wanted));
  }

  #claim({ id, olderIds, keptAfter, holder, requestDigest }: WantedClaim): ClaimAnswer {
    const replies = [id, ...olderIds].flatMap((one) => this.#replies.get(one) ?? []);
    const reply = replies.find(({ keptAt }) => keptAt > keptAfter);
    if (reply !== undefined) return { kind: "kept", reply };
    const claim = this.#claims.get(id);
    const counts = claim !== undefined && this.#now() - claim.askedAt >= doubtMs;
    if (claim === undefined || (counts && claim.doubts >= mostDoubts)) {
      this.#claims.set(id, { holder, requestDigest, doubts: 0, askedAt: this.#now() });
      return { kind: "yours" };
    }
    if (counts) {
      claim.doubts += 1;
      claim.askedAt = this.#now();
    }
    return { kind: claim.requestDigest === requestDigest ? "running" : "reused" };
  }

  confirm(claims: readonly HeldClaim[]): Promise<void> {
    for (const { id, holder } of claims) {
      const claim = this.#claims.get(id);
      if (claim?.holder === holder) claim.doubts = 0;
    }
    return Promise.resolve();
  }

  release({ id, holder }: HeldClaim): Promise<void> {
    if (this.#claims.get(id)?.holder === holder) this.#claims.delete(id);
    return Promise.resolve();
  }

  keep({ reply, holder, limitBytes }: AnsweredClaim): Promise<number> {
    void this.release({ id: reply.id, holder });
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
