import { faults, type Fault } from "../doubles/faults.ts";
import { callKinds, type CallKind } from "../load/load-plan.ts";

/** The targets that can serve while the primary one fails. */
export const leftTargets = {
  second: "a second target of the same model, of a lower priority",
  fallback: "a model in `fallbacks`",
  both: "a second target of a lower priority, and a model in `fallbacks`",
  equal: "a second target of the same priority and weight",
} as const;
export type Left = keyof typeof leftTargets;

export const wires = ["openai", "bedrock"] as const;
export type Wire = (typeof wires)[number];

/** One combination of the grid. */
export interface Cell {
  /** Its parts with slashes between them, such as `throttle/second/openai/whole`. */
  readonly name: string;
  readonly fault: Fault;
  readonly left: Left;
  readonly wire: Wire;
  readonly kind: CallKind;
}

/** All cells; those of one wire and kind are adjacent, so that they share a control. */
export function allCells(): readonly Cell[] {
  return wires.flatMap((wire) =>
    callKinds.flatMap((kind) =>
      lefts
        .filter((left) => isPossible({ left, wire, kind }))
        .flatMap((left) => faults.map((fault) => cellOf({ fault, left, wire, kind }))),
    ),
  );
}

const lefts = ["second", "fallback", "both", "equal"] as const;

/** Embeddings have no fallbacks; equal targets are tried with one wire and kind only. */
function isPossible({ left, wire, kind }: Pick<Cell, "left" | "wire" | "kind">): boolean {
  switch (left) {
    case "second":
      return true;
    case "fallback":
    case "both":
      return kind !== "embeddings";
    case "equal":
      return wire === "openai" && kind === "whole";
  }
}

function cellOf(parts: Omit<Cell, "name">): Cell {
  const { fault, left, wire, kind } = parts;
  return { name: [fault, left, wire, kind].join("/"), ...parts };
}
