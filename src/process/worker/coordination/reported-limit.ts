import { ConcurrencyLimit } from "../../../routing/health/concurrency-limit.ts";
import type { RoutingReports } from "./routing-reports.ts";

/**
 * The concurrency limit of a target, as far as this worker sees; control learns from all workers.
 */
export class ReportedLimit extends ConcurrencyLimit {
  readonly #target: string;
  readonly #reports: Pick<RoutingReports, "answered" | "overloaded">;

  constructor(target: string, reports: Pick<RoutingReports, "answered" | "overloaded">) {
    super();
    this.#target = target;
    this.#reports = reports;
  }

  override succeeded(key: string, nowMs: number): void {
    super.succeeded(key, nowMs);
    this.#reports.answered(this.#target, key);
  }

  override overloaded(key: string, nowMs: number): void {
    super.overloaded(key, nowMs);
    this.#reports.overloaded(this.#target, key);
  }
}
