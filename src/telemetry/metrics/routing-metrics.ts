import { Counter } from "./counter.ts";
import { formatLabels } from "./labels.ts";

const ejectedName = "sluice_target_ejected";

/** Counts ejections, probes and retries. */
export class RoutingMetrics {
  readonly #ejections = new Counter({
    name: "sluice_target_ejections_total",
    help: "Times that a target was ejected because it kept failing: for all keys, or for one.",
    labelNames: ["target", "scope"],
  });
  readonly #probes = new Counter({
    name: "sluice_target_probes_total",
    help: "Requests of the gateway's own to targets in doubt, by outcome.",
    labelNames: ["target", "outcome"],
  });
  readonly #retries = new Counter({
    name: "sluice_retry_decisions_total",
    help: "What was done after failed attempts: where they were made again, or why not.",
    labelNames: ["model", "decision"],
  });
  /** Whether each configured target is ejected. */
  #targets = new Map<string, boolean>();

  /** Sets the targets of the running configuration; others are not shown. */
  configured(targets: Iterable<string>): void {
    const before = this.#targets;
    this.#targets = new Map([...targets].map((target) => [target, before.get(target) ?? false]));
  }

  ejected(target: string, scope: "all" | "key"): void {
    this.#ejections.series([target, scope]).add(1);
    if (scope === "all" && this.#targets.has(target)) this.#targets.set(target, true);
  }

  probed(target: string, outcome: string): void {
    this.#probes.series([target, outcome]).add(1);
  }

  returned(target: string): void {
    if (this.#targets.has(target)) this.#targets.set(target, false);
  }

  retryDecided(model: string, decision: string): void {
    this.#retries.series([model, decision]).add(1);
  }

  render(): string {
    return [
      this.#renderEjected(),
      this.#ejections.render(),
      this.#probes.render(),
      this.#retries.render(),
    ].join("\n");
  }

  #renderEjected(): string {
    const lines = [
      `# HELP ${ejectedName} Whether a target is ejected for all keys: 1 until it works again.`,
      `# TYPE ${ejectedName} gauge`,
    ];
    for (const [target, isEjected] of this.#targets) {
      lines.push(`${ejectedName}{${formatLabels(["target"], [target])}} ${isEjected ? 1 : 0}`);
    }
    return `${lines.join("\n")}\n`;
  }
}
