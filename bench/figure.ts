import type { Summary } from "./statistics.ts";

/** One line of the report. */
export interface Figure {
  /** Group and subject, such as `calls.cpu`. */
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  /** Through nginx, which does none of the work: the floor. */
  readonly nginx?: number;
  /** Without any gateway between. */
  readonly direct?: number;
  readonly sluice: number;
  /** What the target speaks of; without it, `sluice` itself. */
  readonly comparison?: Comparison;
  /** At most so much. */
  readonly target?: number;
}

export interface Comparison {
  /**
   * `ratio`: Sluice by nginx; `added`: Sluice less direct; `growth`: Sluice by an earlier Sluice;
   * `kinds`: Sluice by itself over the upstream kind `openai`.
   */
  readonly kind: "ratio" | "added" | "growth" | "kinds";
  readonly value: Summary;
  /** The same of nginx, where that says something. */
  readonly nginx?: Summary;
}

export function judgedValue(figure: Figure): number {
  return figure.comparison?.value.median ?? figure.sluice;
}

export function meetsTarget(figure: Figure): boolean | undefined {
  return figure.target === undefined ? undefined : judgedValue(figure) <= figure.target;
}
