import { quantile } from "../../bench/statistics.ts";
import {
  runFleet,
  type FleetOptions,
  type FleetResult,
} from "../../test/simulation/fleet/fleet.ts";
import { percent, printTable } from "./print-table.ts";

export interface LimitsRun {
  readonly seed: number;
  readonly workers: number;
  readonly callsPerSecond: number;
  readonly decisionMs: number;
  readonly settleMs: number;
}

const keys = 1_000;
const fromMs = 65_000;

/** What the limits of many keys cost the server, and what its faults do to them. */
export function printLimits({ seed, workers, callsPerSecond, decisionMs, settleMs }: LimitsRun) {
  const base: FleetOptions = {
    seed,
    workers,
    keys,
    callsPerSecond,
    limit: 1_000,
    seconds: 30,
    isSticky: false,
    terms: {
      decisionMs,
      settleMs,
      networkMs: 0.25,
      includeMs: 0.005,
      batch: 100,
      timeoutMs: 50,
      failures: 5,
      probeMs: 200,
      graceMs: 1_000,
    },
  };
  printTable(
    ["calls/s", "server busy", "p50 ms", "p99 ms", "p99.9 ms", "alone"],
    [0.25, 0.5, 1, 1.2, 1.4].map((part) => {
      const result = runFleet({ ...base, callsPerSecond: callsPerSecond * part });
      const { utilisation, local } = result;
      const calls = String(callsPerSecond * part);
      return [calls, percent(utilisation), ...waitsOf(result), String(local)];
    }),
  );
  printTable(
    ["fault, 30 s", "calls of a key", "p99 ms", "most ms", "alone", "recovery ms", "worst/limit"],
    (["frozen", "killed", "flushed"] as const).flatMap((kind) =>
      [false, true].map((isSticky) => faultRow(base, kind, isSticky)),
    ),
  );
}

/** Every key calls one and a half times as often as its limit allows. */
function faultRow(base: FleetOptions, kind: "frozen" | "killed" | "flushed", isSticky: boolean) {
  const limit = (base.callsPerSecond * 60) / keys / 1.5;
  const fault = { kind, fromMs, untilMs: fromMs + 30_000 };
  const result = runFleet({ ...base, limit, isSticky, fault, seconds: 160 });
  const [, p99 = ""] = waitsOf(result);
  const { waits, local, recoveryMs, worst } = result;
  return [
    kind,
    isSticky ? "reach one worker" : "reach all workers",
    p99,
    (waits.at(-1) ?? NaN).toFixed(1),
    String(local),
    recoveryMs === undefined ? "not reached" : String(recoveryMs),
    worst.toFixed(3),
  ];
}

function waitsOf({ waits }: FleetResult): string[] {
  return [0.5, 0.99, 0.999].map((share) => quantile(waits, share).toFixed(2));
}
