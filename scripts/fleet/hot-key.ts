import { quantile } from "../../bench/statistics.ts";
import { runHotKey } from "../../test/simulation/fleet/hot-key/hot-key.ts";
import { percent, printTable } from "./print-table.ts";

export interface HotKeyRun {
  readonly seed: number;
  readonly workers: number;
  readonly callsPerSecond: number;
  readonly decisionMs: number;
  readonly settleMs: number;
  readonly hasLeases: boolean;
}

/** What a key costs the server that makes most calls, within its limit and beyond it. */
export function printHotKey(run: HotKeyRun): void {
  const { seed, workers, callsPerSecond, decisionMs, settleMs, hasLeases } = run;
  const terms = {
    countMs: decisionMs / 2,
    acquireMs: decisionMs / 2,
    settleMs,
    giveBackMs: settleMs,
    newsMs: 0.0045,
    networkMs: 0.25,
    againMs: 5,
  };
  const fleet = { seed, workers, keys: 1_000, hotShare: 0.6, hasLeases, seconds: 130, terms };
  printTable(
    [
      "calls/s",
      "calls/limit",
      "scripts/call",
      "server busy",
      "p50 ms",
      "p99 ms",
      "most ms",
      "recalls",
      "worst/limit",
      "refused early",
      "repeated late",
    ],
    [0.5, 1, 1.4].flatMap((part) =>
      [0.8, 1.5].map((hotLoad) => {
        const calls = callsPerSecond * part;
        const result = runHotKey({ ...fleet, callsPerSecond: calls, hotLoad });
        const { waits } = result;
        return [
          String(calls),
          hotLoad.toFixed(1),
          result.scriptsPerCall.toFixed(2),
          percent(result.utilisation),
          quantile(waits, 0.5).toFixed(2),
          quantile(waits, 0.99).toFixed(2),
          (waits.at(-1) ?? NaN).toFixed(1),
          String(result.recalls),
          result.worst.toFixed(4),
          percent(result.refusedWithRoom, 2),
          percent(result.repeatedWithRoom, 2),
        ];
      }),
    ),
  );
}
