import type { Clock } from "../../../domain/clock.ts";
import type { BudgetKind, RoutingReport } from "../../link/messages.ts";

export interface RoutingReportsOptions {
  readonly clock: Pick<Clock, "schedule">;
  readonly tell: (report: RoutingReport) => void;
}

/** Time between two reports. */
const intervalMs = 100;

/** Counts what control needs to know about this worker's attempts, and reports it in batches. */
export class RoutingReports {
  readonly #options: RoutingReportsOptions;
  readonly #began = { retries: new Map<string, number>(), hedges: new Map<string, number>() };
  /** By target and key. */
  readonly #answered = new Map<string, Map<string, number>>();
  #isPlanned = false;

  constructor(options: RoutingReportsOptions) {
    this.#options = options;
  }

  /** An ordinary attempt began. */
  began(kind: BudgetKind, name: string): void {
    count(this.#began[kind], name);
    this.#plan();
  }

  answered(target: string, key: string): void {
    let keys = this.#answered.get(target);
    if (keys === undefined) this.#answered.set(target, (keys = new Map<string, number>()));
    count(keys, key);
    this.#plan();
  }

  /** Reported at once, after everything before it. */
  overloaded(target: string, key: string): void {
    this.#flush([[target, key]]);
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#options.clock.schedule(() => {
      this.#isPlanned = false;
      // An overload may have been reported since, together with everything before it.
      if (this.#hasNews) this.#flush([]);
    }, intervalMs);
  }

  get #hasNews(): boolean {
    const { retries, hedges } = this.#began;
    return retries.size + hedges.size + this.#answered.size > 0;
  }

  #flush(overloaded: RoutingReport["overloaded"]): void {
    const { retries, hedges } = this.#began;
    const answered = [...this.#answered].flatMap(([target, keys]) =>
      [...keys].map(([key, times]) => [target, key, times] as const),
    );
    const began = { retries: [...retries], hedges: [...hedges] };
    retries.clear();
    hedges.clear();
    this.#answered.clear();
    this.#options.tell({ began, answered, overloaded });
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
