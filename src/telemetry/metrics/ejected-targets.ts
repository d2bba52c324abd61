import { formatLabels, renderMetric } from "./text-format.ts";

const metric = {
  name: "sluice_target_ejected",
  help: "Whether a target is ejected for all keys: 1 until it works again.",
};

/** Whether each configured target is ejected. */
export class EjectedTargets {
  #targets = new Map<string, boolean>();

  /** Sets the targets of the running configuration; others are not shown. */
  configured(targets: Iterable<string>): void {
    const before = this.#targets;
    this.#targets = new Map([...targets].map((target) => [target, before.get(target) ?? false]));
  }

  set(target: string, isEjected: boolean): void {
    if (this.#targets.has(target)) this.#targets.set(target, isEjected);
  }

  render(): string {
    const values = [...this.#targets].map(
      ([target, isEjected]) => [formatLabels(["target"], [target]), isEjected ? 1 : 0] as const,
    );
    return renderMetric("gauge", metric, values);
  }
}
