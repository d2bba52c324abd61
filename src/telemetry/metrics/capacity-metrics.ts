import type { CapacityClass, UsageRecord } from "../../domain/usage/usage.ts";
import { capacityClasses, type Counters } from "./counters.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { formatLabels, renderMetric } from "./text-format.ts";

/** Load by class of a pool, or of the targets of an upstream without one. */
export interface PoolGauges {
  readonly kind: "pool" | "upstream";
  readonly name: string;
  readonly inFlight: Readonly<Record<CapacityClass, number>>;
  readonly queued: Readonly<Record<CapacityClass, number>>;
}

/** Places of pools, waits for them, and broken guarantees of provisioned throughput. */
export class CapacityMetrics {
  readonly #waits = new DurationHistogram({
    name: "sluice_queue_wait_seconds",
    help: "Time that calls waited for a place at a pool or upstream, by how the wait ended.",
    labelNames: ["pool", "class", "outcome"],
    bounds: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
  });
  readonly #counters: Counters;
  #pools: () => readonly PoolGauges[] = () => [];

  constructor(counters: Counters) {
    this.#counters = counters;
  }

  /** Sets the source of the gauges, read at each scrape. */
  follow(pools: () => readonly PoolGauges[]): void {
    this.#pools = pools;
  }

  waited(wait: {
    readonly pool: Pick<PoolGauges, "kind" | "name">;
    readonly capacityClass: CapacityClass;
    readonly outcome: string;
    readonly waitedMs: number;
  }): void {
    const labels = [labelOf(wait.pool), wait.capacityClass, wait.outcome];
    this.#waits.series(labels).observe(wait.waitedMs / 1000);
  }

  callEnded(record: UsageRecord): void {
    if (!breaksGuarantee(record)) return;
    this.#counters.add("sluice_guarantee_breaches_total", [record.model]);
  }

  render(): string {
    return [
      this.#renderGauge("in_flight", "inFlight", "Calls that hold a place of a pool or upstream."),
      this.#renderGauge("queued", "queued", "Calls that wait for a place of a pool or upstream."),
      this.#waits.render(),
    ].join("\n");
  }

  #renderGauge(name: string, field: "inFlight" | "queued", help: string): string {
    const values = this.#pools().flatMap((pool) =>
      capacityClasses.map((each) => {
        const labels = formatLabels(["pool", "class"], [labelOf(pool), each]);
        return [labels, pool[field][each]] as const;
      }),
    );
    return renderMetric("gauge", { name: `sluice_pool_${name}`, help }, values);
  }
}

/** A call without routing was refused before a target was chosen. */
function breaksGuarantee({ capacityClass, status, routing }: UsageRecord): boolean {
  if (capacityClass !== "provisioned" || status !== 503 || routing === undefined) return false;
  // A given-up attempt did not fail: the process shut down, or an image could not be read.
  return routing.attempts.at(-1)?.outcome !== "given-up";
}

function labelOf({ kind, name }: Pick<PoolGauges, "kind" | "name">): string {
  return `${kind}:${name}`;
}
