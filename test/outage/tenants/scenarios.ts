import { requestMarks } from "../doubles/faults.ts";
import type { Load } from "../load/load-plan.ts";

/** The behaviour of one tenant beside nineteen others; only its own calls may suffer. */
export const behaviours = {
  none: "calls as the others do: what the measurement itself adds",
  timeouts: "calls that the upstream never answers",
  "huge-inputs": "inputs of 400 KB",
  stalls: "streams that the upstream stops in the middle",
  disconnects: "leaves its streams in the middle",
  crowd: "sixty streams at once, and once a second one that the upstream stops in the middle",
} as const;
export type Behaviour = keyof typeof behaviours;

/** One combination of the suite. */
export interface Scenario {
  /** Its parts with slashes between them, such as `stalls/two-targets/own-accounts`. */
  readonly name: string;
  readonly behaviour: Behaviour;
  readonly targets: 1 | 2;
  readonly isOneAccount: boolean;
}

const order = ["none", "timeouts", "huge-inputs", "stalls", "disconnects", "crowd"] as const;

export function allScenarios(): readonly Scenario[] {
  return order.flatMap((behaviour) =>
    ([1, 2] as const).flatMap((targets) =>
      [false, true].map((isOneAccount) => {
        const place = `${targets === 1 ? "one-target" : "two-targets"}`;
        const accounts = isOneAccount ? "one-account" : "own-accounts";
        const name = [behaviour, place, accounts].join("/");
        return { name, behaviour, targets, isOneAccount };
      }),
    ),
  );
}

type Caller = Pick<Load, "url" | "key" | "model" | "perSecond">;

const hugeBytes = 400_000;
const leavesAfterMs = 150;
/** A long stream of a double takes two seconds. */
const crowdPerSecond = 30;

/** What the tenant sends; `perSecond` is the pace of every tenant. */
export function loadsOf(behaviour: Behaviour, caller: Caller): readonly Load[] {
  const { hang, stall, long } = requestMarks;
  switch (behaviour) {
    case "none":
      return [{ ...caller, name: "none", kind: "whole" }];
    case "timeouts":
      return [{ ...caller, name: "timeouts", kind: "whole", words: hang }];
    case "huge-inputs":
      return [{ ...caller, name: "huge", kind: "whole", extraBytes: hugeBytes }];
    case "stalls":
      return [{ ...caller, name: "stalls", kind: "stream", words: stall }];
    case "disconnects":
      return [{ ...caller, name: "leaves", kind: "stream", words: long, leavesAfterMs }];
    case "crowd":
      return [
        { ...caller, name: "crowd", kind: "stream", words: long, perSecond: crowdPerSecond },
        { ...caller, name: "stalls", kind: "stream", words: stall, perSecond: 1 },
      ];
  }
}
