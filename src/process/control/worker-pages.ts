import { mergeEnded, mergePages } from "../../telemetry/metrics/merge-pages.ts";

/** Which process a page of metrics is of: ids of processes are used again. */
export interface PageOwner {
  readonly number: number;
  readonly pid: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

const mostEnded = 100;
/** Of all that ended so long ago that their pages were joined. */
const joined = "joined";

/**
 * The metrics of all workers, those that have ended included, so that no count goes back. Counts
 * begin with this control process: those of workers that are older begin at what they had when it
 * met them. A reader then sees a plain restart of the counts, not a part of them gone.
 */
export class WorkerPages {
  readonly #startedAt: number;
  readonly #pages = new Map<string, string>();
  /** What workers that are older than control had counted before. */
  readonly #before = new Map<string, string>();
  /** Of those in `#pages` that have ended, the oldest first. */
  readonly #ended = new Set<string>();

  constructor(startedAt: number) {
    this.#startedAt = startedAt;
  }

  /** Whether the worker has counted before this control process, and has not been read yet. */
  isUnread(owner: PageOwner): boolean {
    return owner.startedAt < this.#startedAt && !this.#before.has(nameOf(owner));
  }

  keep(owner: PageOwner, page: string): void {
    const name = nameOf(owner);
    if (this.isUnread(owner)) this.#before.set(name, mergeEnded([page]));
    this.#pages.set(name, page);
    this.#ended.delete(name);
  }

  /** The worker has ended, or seems so: its gauges go. */
  ended(owner: PageOwner): void {
    const name = nameOf(owner);
    const page = this.#pages.get(name);
    if (page === undefined) return;
    this.#pages.set(name, mergeEnded([page]));
    this.#ended.add(name);
    if (this.#ended.size > mostEnded) this.#join();
  }

  render(): string {
    return mergePages([...this.#pages.values()], [...this.#before.values()]);
  }

  #join(): void {
    const names = [joined, ...this.#ended];
    const pages = names.map((name) => this.#pages.get(name) ?? "");
    for (const name of names) this.#pages.delete(name);
    this.#pages.set(joined, mergeEnded(pages));
    this.#ended.clear();
  }
}

function nameOf({ number, pid, startedAt }: PageOwner): string {
  return `${number} ${pid} ${startedAt}`;
}
