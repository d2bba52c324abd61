import type { Summary } from "./statistics.ts";

/** One line of the report. */
export interface Figure {
  /** Group and subject, such as `calls.cpu`. */
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  /** Through nginx, which does none of the work: the minimum. */
  readonly nginx?: number;
  /** Without a gateway. */
  readonly direct?: number;
  readonly sluice: number;
  /** The quantity of the target; default: `sluice` itself. */
  readonly comparison?: Comparison;
  /** Through other gateways; empty: none were asked for. */
  readonly peers?: readonly PeerValue[];
  /** The upper limit. */
  readonly target?: number;
  /** What the target is for, if there is a comparison; default: that. */
  readonly judges?: "comparison" | "value";
}

export interface PeerValue {
  /** The gateway's. */
  readonly name: string;
  readonly value: number;
  /** Of the same kind as the figure's. */
  readonly compared?: Summary;
}

export interface Comparison {
  /**
   * `ratio`: Sluice divided by nginx; `added`: Sluice minus direct, or two processes minus two gateways;
   * `growth`: Sluice divided by itself earlier, or with fewer processes; `kinds`: Sluice divided by
   * itself over the upstream kind `openai`.
   */
  readonly kind: "ratio" | "added" | "growth" | "kinds";
  readonly value: Summary;
  /** The same for nginx, if it is meaningful. */
  readonly nginx?: Summary;
}

function judgedValue(figure: Figure): number {
  const compared = figure.judges === "value" ? undefined : figure.comparison;
  return compared?.value.median ?? figure.sluice;
}

export function meetsTarget(figure: Figure): boolean | undefined {
  return figure.target === undefined ? undefined : judgedValue(figure) <= figure.target;
}
