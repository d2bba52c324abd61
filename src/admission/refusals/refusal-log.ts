import type { Refusal } from "../../domain/errors/refusal.ts";
import { RefusalQueue } from "./refusal-queue.ts";

export interface RefusalLogOptions {
  /** Kept for one key, one unknown public id, or the signed-in users of one account. */
  readonly perSubject: number;
  /** Kept in all. */
  readonly limit: number;
}

export interface RefusalFilter {
  readonly keyId?: string | undefined;
  readonly accountId?: string | undefined;
}

export const refusalLogDefaults: RefusalLogOptions = { perSubject: 20, limit: 10_000 };

/**
 * The last refusals, in bounded memory. Unknown callers have a fifth of the room: public ids can be
 * made up, and must not push out the refusals of real keys.
 */
export class RefusalLog {
  readonly #ofKeys: RefusalQueue;
  readonly #ofStrangers: RefusalQueue;

  constructor({ perSubject, limit }: RefusalLogOptions = refusalLogDefaults) {
    const strangers = Math.ceil(limit / 5);
    this.#ofKeys = new RefusalQueue({ perSubject, limit: limit - strangers });
    this.#ofStrangers = new RefusalQueue({ perSubject, limit: strangers });
  }

  get size(): number {
    return this.#ofKeys.size + this.#ofStrangers.size;
  }

  /** Takes constant time. */
  record(refusal: Refusal): void {
    const { keyId, publicId, accountId } = refusal.explanation;
    if (keyId !== undefined) this.#ofKeys.add(keyId, refusal);
    else this.#ofStrangers.add(publicId ?? accountId ?? "", refusal);
  }

  /** By request id. */
  find(id: string): Refusal | undefined {
    return this.#ofKeys.find(id) ?? this.#ofStrangers.find(id);
  }

  /** Newest first. */
  list({ keyId, accountId }: RefusalFilter, limit: number): readonly Refusal[] {
    const ofKeys = keyId === undefined ? this.#ofKeys.newestFirst() : this.#ofKeys.of(keyId);
    const ofStrangers = keyId === undefined ? this.#ofStrangers.newestFirst() : [];
    const found: Refusal[] = [];
    for (const refusal of newestOfBoth(ofKeys, ofStrangers)) {
      if (found.length >= limit) break;
      if (accountId === undefined || refusal.explanation.accountId === accountId) {
        found.push(refusal);
      }
    }
    return found;
  }
}

function* newestOfBoth(one: Iterable<Refusal>, other: Iterable<Refusal>): Generator<Refusal> {
  const others = other[Symbol.iterator]();
  let waiting = others.next();
  for (const refusal of one) {
    while (waiting.done !== true && waiting.value.at > refusal.at) {
      yield waiting.value;
      waiting = others.next();
    }
    yield refusal;
  }
  while (waiting.done !== true) {
    yield waiting.value;
    waiting = others.next();
  }
}
