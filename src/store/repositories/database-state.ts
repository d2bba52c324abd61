import { systemClock, type Clock } from "../../domain/clock.ts";
import { StorageUnavailable } from "../errors.ts";

export interface StateOptions {
  /** Shortest time between two attempts to reach a database that failed. Default 500. */
  readonly reopenIntervalMs?: number | undefined;
  /** Most operations that wait or run. Default 1000. */
  readonly queueLimit?: number | undefined;
  readonly clock?: Pick<Clock, "monotonic"> | undefined;
  /** Called once when the database stops working. */
  onTrouble?(what: string, error: unknown): void;
  onRecovered?(): void;
}

interface Trouble {
  readonly what: string;
  /** Whether reading still works, so that only a change proves the end of the trouble. */
  readonly isOfChanges: boolean;
  readonly error: unknown;
  readonly at: number;
}

/** Whether a database works, as its last uses have shown, and how many wait for it. */
export class DatabaseState {
  readonly clock: Pick<Clock, "monotonic">;
  readonly #name: string;
  readonly #options: StateOptions;
  #waiting = 0;
  #trouble: Trouble | undefined;

  /** `name`: for messages. */
  constructor(name: string, options: StateOptions) {
    this.#name = name;
    this.#options = options;
    this.clock = options.clock ?? systemClock;
  }

  /** Throws `StorageUnavailable` when too many wait. */
  async counted<Result>(task: () => Promise<Result>): Promise<Result> {
    if (this.#waiting >= (this.#options.queueLimit ?? 1_000)) {
      throw new StorageUnavailable("too many operations wait for the database");
    }
    this.#waiting += 1;
    try {
      return await task();
    } finally {
      this.#waiting -= 1;
    }
  }

  failed({ what, isOfChanges = false }: Partial<Trouble> & Pick<Trouble, "what">, error: unknown) {
    const isNew = this.#trouble?.what !== what;
    this.#trouble = { what, isOfChanges, error, at: this.clock.monotonic() };
    if (isNew) this.#options.onTrouble?.(what, error);
  }

  worked(isChange: boolean): void {
    if (this.#trouble === undefined || (this.#trouble.isOfChanges && !isChange)) return;
    this.#trouble = undefined;
    this.#options.onRecovered?.();
  }

  /** Whether the last failure is too recent for another attempt. */
  get failedJustNow(): boolean {
    return this.isJustNow(this.#trouble?.at ?? -Infinity);
  }

  /** Whether that is too recent for another attempt. */
  isJustNow(at: number): boolean {
    return this.clock.monotonic() - at < (this.#options.reopenIntervalMs ?? 500);
  }

  /** The error for a use that was not tried. */
  refusal(): StorageUnavailable {
    const { what, error } = this.#trouble ?? { what: "cannot be used", error: undefined };
    return this.unavailable(what, error);
  }

  unavailable(what: string, cause: unknown): StorageUnavailable {
    return new StorageUnavailable(`the database ${this.#name} ${what}`, { cause });
  }
}
