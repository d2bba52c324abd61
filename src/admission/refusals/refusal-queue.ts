import type { Refusal } from "../../domain/errors/refusal.ts";

interface Entry {
  readonly subject: string;
  readonly refusal: Refusal;
  older: Entry | undefined;
  newer: Entry | undefined;
}

/**
 * Refusals in order of arrival, in a linked list, so that any is removed in constant time: the
 * oldest of all when there are too many, or the oldest of a subject that has its share.
 */
export class RefusalQueue {
  readonly #perSubject: number;
  readonly #limit: number;
  readonly #byId = new Map<string, Entry>();
  /** Oldest first, at most `perSubject` each. */
  readonly #bySubject = new Map<string, Entry[]>();
  #oldest: Entry | undefined;
  #newest: Entry | undefined;

  constructor({ perSubject, limit }: { readonly perSubject: number; readonly limit: number }) {
    this.#perSubject = perSubject;
    this.#limit = limit;
  }

  get size(): number {
    return this.#byId.size;
  }

  add(subject: string, refusal: Refusal): void {
    const repeated = this.#byId.get(refusal.id);
    if (repeated !== undefined) this.#remove(repeated);
    const own = this.#bySubject.get(subject);
    if (own !== undefined && own.length >= this.#perSubject) this.#remove(own[0]);
    if (this.#byId.size >= this.#limit) this.#remove(this.#oldest);
    this.#append({ subject, refusal, older: this.#newest, newer: undefined });
  }

  find(id: string): Refusal | undefined {
    return this.#byId.get(id)?.refusal;
  }

  /** The refusals of one subject, newest first. */
  of(subject: string): readonly Refusal[] {
    return (this.#bySubject.get(subject) ?? []).map(({ refusal }) => refusal).toReversed();
  }

  *newestFirst(): Generator<Refusal> {
    for (let entry = this.#newest; entry !== undefined; entry = entry.older) yield entry.refusal;
  }

  #append(entry: Entry): void {
    if (entry.older === undefined) this.#oldest = entry;
    else entry.older.newer = entry;
    this.#newest = entry;
    this.#byId.set(entry.refusal.id, entry);
    const own = this.#bySubject.get(entry.subject);
    if (own === undefined) this.#bySubject.set(entry.subject, [entry]);
    else own.push(entry);
  }

  #remove(entry: Entry | undefined): void {
    if (entry === undefined) return;
    const { older, newer, subject, refusal } = entry;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    this.#byId.delete(refusal.id);
    const own = this.#bySubject.get(subject) ?? [];
    own.splice(own.indexOf(entry), 1);
    if (own.length === 0) this.#bySubject.delete(subject);
  }
}
