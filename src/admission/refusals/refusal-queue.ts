import type { Refusal } from "../../domain/errors/refusal.ts";

interface Entry {
  readonly subject: string;
  readonly refusal: Refusal;
}

/**
 * Refusals in order of arrival. The oldest goes when there are too many, or the oldest of a subject
 * that has its share. Each takes constant time.
 */
export class RefusalQueue {
  readonly #perSubject: number;
  readonly #limit: number;
  /** By request id, oldest first. */
  readonly #byId = new Map<string, Entry>();
  /** Ids, oldest first, at most `perSubject` each. */
  readonly #bySubject = new Map<string, string[]>();

  constructor({ perSubject, limit }: { readonly perSubject: number; readonly limit: number }) {
    this.#perSubject = perSubject;
    this.#limit = limit;
  }

  get size(): number {
    return this.#byId.size;
  }

  add(subject: string, refusal: Refusal): void {
    this.#remove(refusal.id);
    const own = this.#bySubject.get(subject);
    if (own !== undefined && own.length >= this.#perSubject) this.#remove(own[0]);
    if (this.#byId.size >= this.#limit) this.#remove(this.#byId.keys().next().value);
    this.#byId.set(refusal.id, { subject, refusal });
    const kept = this.#bySubject.get(subject);
    if (kept === undefined) this.#bySubject.set(subject, [refusal.id]);
    else kept.push(refusal.id);
  }

  find(id: string): Refusal | undefined {
    return this.#byId.get(id)?.refusal;
  }

  /** The refusals of one subject, newest first. */
  of(subject: string): readonly Refusal[] {
    return (this.#bySubject.get(subject) ?? []).flatMap((id) => this.find(id) ?? []).toReversed();
  }

  newestFirst(): readonly Refusal[] {
    return [...this.#byId.values()].map(({ refusal }) => refusal).toReversed();
  }

  #remove(id: string | undefined): void {
    const entry = id === undefined ? undefined : this.#byId.get(id);
    if (id === undefined || entry === undefined) return;
    this.#byId.delete(id);
    const own = this.#bySubject.get(entry.subject) ?? [];
    own.splice(own.indexOf(id), 1);
    if (own.length === 0) this.#bySubject.delete(entry.subject);
  }
}
