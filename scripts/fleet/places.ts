import { quantile } from "../../bench/statistics.ts";
import {
  runPlaceFleet,
  type PlaceFleetOptions,
  type PlaceFleetResult,
} from "../../test/simulation/fleet/places/place-fleet.ts";
import { percent, printTable } from "./print-table.ts";

export interface PlacesRun {
  readonly seed: number;
  readonly workers: number;
  readonly decisionMs: number;
  readonly settleMs: number;
}

/** Measured with 200 processes, on the machine of the other figures. */
const scriptTerms = { scriptMs: 0.01, fieldMs: 0.0018, divisionMs: 0.002, newsMs: 0.0045 };
const placesOfWorker = 10;
const fromMs = 15_000;

/**
 * What the places of one pool cost the server, and what faults do to them. One account makes half of
 * all calls, nine accounts the other half.
 */
export function printPlaces({ seed, workers, decisionMs, settleMs }: PlacesRun): void {
  const terms = { ...scriptTerms, decisionMs, settleMs, networkMs: 0.25, timeoutMs: 50 };
  const optionsOf = (part: number, load: number, seconds: number): PlaceFleetOptions => {
    const count = Math.max(2, Math.round(workers * part));
    return { seed, workers: count, places: count * placesOfWorker, load, seconds, terms };
  };
  printTable(
    [
      "workers",
      "load",
      "most/places",
      "over s",
      "unused",
      "nine: p99 s",
      "longest s",
      "nine: refused",
      "one: refused",
      "scripts/s",
      "server busy",
      "no answer",
    ],
    [0.05, 0.1, 0.2, 0.5, 1].flatMap((part) =>
      [0.5, 0.9, 1.5].map((load) => {
        const options = optionsOf(part, load, 20);
        return [String(options.workers), percent(load), ...cellsOf(runPlaceFleet(options))];
      }),
    ),
  );
  const options = optionsOf(0.1, 1.5, 60);
  const faults: readonly [string, Partial<PlaceFleetOptions>][] = [
    ["none", {}],
    ["frozen", { fault: { kind: "frozen", fromMs, untilMs: fromMs + 30_000 } }],
    ["killed", { fault: { kind: "killed", fromMs, untilMs: fromMs + 30_000 } }],
    ["flushed", { fault: { kind: "flushed", fromMs } }],
    ["a third dies", { deathAtMs: fromMs }],
  ];
  printTable(
    ["fault", "most/places", "over s", "low s", "low until s", "unused", "nine: refused"],
    faults.map(([name, fault]) => {
      const result = runPlaceFleet({ ...options, ...fault });
      const { most, overMs, lowMs, lowUntilMs, unused, light } = result;
      return [
        name,
        most.toFixed(3),
        secondsOf(overMs),
        secondsOf(lowMs),
        lowMs === 0 ? "-" : `+${secondsOf(lowUntilMs - fromMs)}`,
        percent(unused, 1),
        percent(light.refused, 1),
      ];
    }),
  );
}

function cellsOf(result: PlaceFleetResult): string[] {
  const { light, heavy } = result;
  return [
    result.most.toFixed(3),
    secondsOf(result.overMs),
    percent(result.unused, 1),
    secondsOf(quantile(light.waits, 0.99)),
    secondsOf(Math.max(light.waits.at(-1) ?? 0, heavy.waits.at(-1) ?? 0)),
    percent(light.refused, 1),
    percent(heavy.refused, 1),
    result.exchangesASecond.toFixed(0),
    percent(result.utilisation),
    percent(result.unanswered),
  ];
}

function secondsOf(ms: number): string {
  return (ms / 1_000).toFixed(ms < 100 ? 3 : 1);
}
