import type { Refusal, RefusalFilter } from "../../domain/errors/refusal.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";

interface RefusalBounds {
  /** For one key, one unknown public id, or the signed-in users of one account. */
  readonly perSubject: number;
  readonly limit: number;
}

/**
 * Bounds of all refusals of keys and of those of unknown callers. The latter have a fifth of the
 * room: public ids can be made up, and must not push out the refusals of real keys.
 */
export const refusalBounds = {
  keys: { perSubject: 20, limit: 8_000 },
  strangers: { perSubject: 20, limit: 2_000 },
} satisfies Record<string, RefusalBounds>;

/** The last refusals, in bounded memory. */
export class RefusalLog {
  readonly #ofKeys: RefusalQueue;
  readonly #ofStrangers: RefusalQueue;

  constructor(bounds = refusalBounds) {
    this.#ofKeys = new RefusalQueue(bounds.keys);
    this.#ofStrangers = new RefusalQueue(bounds.strangers);
  }

  get size(): number {
    return this.#ofKeys.size + this.#ofStrangers.size;
  }

  record(refusal: Refusal): void {
    const isOfKey = refusal.explanation.keyId !== undefined;
    (isOfKey ? this.#ofKeys : this.#ofStrangers).add(refusal);
  }

  /** Newest first. */
  list({ id, keyId, accountId }: RefusalFilter, limit: number): readonly Refusal[] {
    if (id !== undefined) return [this.#ofKeys.find(id) ?? this.#ofStrangers.find(id) ?? []].flat();
    const ofKeys = keyId === undefined ? this.#ofKeys.newestFirst() : this.#ofKeys.of(keyId);
    const ofStrangers = keyId === undefined ? this.#ofStrangers.newestFirst() : [];
    const newest = [...ofKeys, ...ofStrangers].sort((one, other) => other.at - one.at);
    const isOf = ({ explanation }: Refusal): boolean =>
      accountId === undefined || explanation.accountId === accountId;
    return newest.filter(isOf).slice(0, limit);
  }
}

/**
 * Refusals in order of arrival. The oldest goes when there are too many. Of a subject that has its
 * share, the oldest of the cause that it has most often goes. Each takes constant time.
 */
class RefusalQueue {
  readonly #bounds: RefusalBounds;
  /** By request id, oldest first. */
  readonly #byId = new Map<string, Refusal>();
  /** Ids, oldest first, at most `perSubject` each. */
  readonly #bySubject = new Map<string, string[]>();

  constructor(bounds: RefusalBounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#byId.size;
  }

  add(refusal: Refusal): void {
    const subject = subjectOf(refusal);
    this.#remove(refusal.id);
    const own = this.#bySubject.get(subject);
    if (own !== undefined && own.length >= this.#bounds.perSubject) {
      const kept = own.flatMap((id) => this.find(id) ?? []);
      this.#remove(oldestOfMost([...kept, refusal])?.id);
    }
    if (this.#byId.size >= this.#bounds.limit) this.#remove(this.#byId.keys().next().value);
    this.#byId.set(refusal.id, refusal);
    const kept = this.#bySubject.get(subject);
    if (kept === undefined) this.#bySubject.set(subject, [refusal.id]);
    else kept.push(refusal.id);
  }

  find(id: string): Refusal | undefined {
    return this.#byId.get(id);
  }

  of(subject: string): readonly Refusal[] {
    return (this.#bySubject.get(subject) ?? []).flatMap((id) => this.find(id) ?? []).toReversed();
  }

  newestFirst(): readonly Refusal[] {
    return [...this.#byId.values()].toReversed();
  }

  #remove(id: string | undefined): void {
    const refusal = id === undefined ? undefined : this.#byId.get(id);
    if (refusal === undefined) return;
    this.#byId.delete(refusal.id);
    const subject = subjectOf(refusal);
    const own = this.#bySubject.get(subject) ?? [];
    own.splice(own.indexOf(refusal.id), 1);
    if (own.length === 0) this.#bySubject.delete(subject);
  }
}

/** So that many of one cause do not push out another. */
function oldestOfMost(refusals: readonly Refusal[]): Refusal | undefined {
  const byCause = Map.groupBy(refusals, ({ explanation: { rule, param } }) => `${rule} ${param}`);
  const [first = [], ...others] = byCause.values();
  return others.reduce((most, of) => (of.length > most.length ? of : most), first)[0];
}

function subjectOf({ explanation: { keyId, publicId, accountId } }: Refusal): string {
  return keyId ?? publicId ?? accountId ?? "";
}

/**
 * The refusal that is kept for a stream that the gateway itself has ended, for example because its
 * key was revoked, or while it waited in a queue after its headers were sent early. If it fails
 * before, the same refusal is kept again when it is answered, under the same id.
 */
export function refusalOfStream(
  record: UsageRecord,
  { status, code, explanation }: GatewayError,
  at: number,
): Refusal | undefined {
  const isOwn = explanation !== undefined && explanation.rule !== "upstream";
  if (!record.isStreamed || !isOwn) return undefined;
  const { id, keyId, accountId, application, environment, model, dialect } = record;
  const known = { keyId, accountId, application, environment, model };
  return { id, at, status, code, dialect, explanation: { ...known, ...explanation } };
}
