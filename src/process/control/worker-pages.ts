import { mergeEnded, mergePages } from "../../telemetry/metrics/merge-pages.ts";

/** Identifies the process of a page of metrics; the system reuses process ids. */
export interface PageOwner {
  readonly number: number;
  readonly pid: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

const mostEnded = 100;
/** The sum of processes that ended long ago. */
const joined = "joined";

/**
 * The metrics of all workers, including those that have ended, so that no count decreases. Counts
 * begin with this control process: those of older workers count from the value they had when it
 * first read them. A reader then sees an ordinary restart of the counts, not a part of them
 * missing.
 */
export class WorkerPages {
  readonly #startedAt: number;
  readonly #pages = new Map<string, string>();
  /** What older workers had counted before this control process. */
  readonly #before = new Map<string, string>();
  /** Processes in `#pages` that have ended, oldest first. */
  readonly #ended = new Set<string>();

  constructor(startedAt: number) {
    this.#startedAt = startedAt;
  }

  /**
   * Whether the worker has counted before this control process began, and has not been read yet.
   */
  isUnread(owner: PageOwner): boolean {
    return owner.startedAt < this.#startedAt && !this.#before.has(nameOf(owner));
  }

  keep(owner: PageOwner, page: string): void {
    const name = nameOf(owner);
    if (this.isUnread(owner)) this.#before.set(name, mergeEnded([page]));
    this.#pages.set(name, page);
    this.#ended.delete(name);
  }

  /** The worker has ended, or seems to have: its gauges are dropped. */
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
