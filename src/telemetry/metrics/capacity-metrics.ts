import type { CapacityClass, UsageRecord } from "../../domain/usage/usage.ts";
import { Counter } from "./counter.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { formatLabels } from "./labels.ts";

/** Load by class of a pool, or of the targets of an upstream without one. */
export interface PoolGauges {
  readonly kind: "pool" | "upstream";
  readonly name: string;
  readonly inFlight: Readonly<Record<CapacityClass, number>>;
  readonly queued: Readonly<Record<CapacityClass, number>>;
}

const classes: readonly CapacityClass[] = ["provisioned", "spillover", "on-demand"];

/** Slots of pools, waits for them, and broken guarantees of provisioned throughput. */
export class CapacityMetrics {
  readonly #waits = new DurationHistogram({
    name: "sluice_queue_wait_seconds",
    help: "Time that calls waited for a place at a pool or upstream, by how the wait ended.",
    labelNames: ["pool", "class", "outcome"],
    bounds: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
  });
  readonly #breaches = new Counter({
    name: "sluice_guarantee_breaches_total",
    help:
      "Calls within provisioned throughput that ended with 503 because every target failed or was " +
      "busy. Not those that the gateway refused before it looked for a target, or cut off.",
    labelNames: ["model"],
  });
  #pools: () => readonly PoolGauges[] = () => [];

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
    if (breaksGuarantee(record)) this.#breaches.series([record.model]).add(1);
  }

  render(): string {
    const pools = this.#pools();
    return [
      renderGauge(inFlightGauge, pools),
      renderGauge(queuedGauge, pools),
      this.#waits.render(),
      this.#breaches.render(),
    ].join("\n");
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

interface GaugeKind {
  readonly name: string;
  readonly help: string;
  readonly field: "inFlight" | "queued";
}

const inFlightGauge: GaugeKind = {
  name: "sluice_pool_in_flight",
  help: "Calls that hold a place of a pool or upstream.",
  field: "inFlight",
};

const queuedGauge: GaugeKind = {
  name: "sluice_pool_queued",
  help: "Calls that wait for a place of a pool or upstream.",
  field: "queued",
};

function renderGauge({ name, help, field }: GaugeKind, pools: readonly PoolGauges[]): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`];
  for (const pool of pools) {
    for (const capacityClass of classes) {
      const labels = formatLabels(["pool", "class"], [labelOf(pool), capacityClass]);
      lines.push(`${name}{${labels}} ${pool[field][capacityClass]}`);
    }
  }
  return `${lines.join("\n")}\n`;
}
