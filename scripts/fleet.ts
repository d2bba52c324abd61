/**
 * Simulates the limits that a hundred gateways share in one Valkey server, on virtual time: the
 * waits and the load of the server, and what its faults do to limits. `docs/scaling.md` explains
 * the columns. `--replicas N`, `--calls N` (a second), `--decision-us N`, `--settle-us N` and
 * `--seed N` change a figure.
 */
import { parseArgs } from "node:util";
import { quantile } from "../bench/statistics.ts";
import { runFleet, type FleetOptions, type FleetResult } from "../test/simulation/fleet/fleet.ts";

const { values } = parseArgs({
  options: {
    replicas: { type: "string", default: "100" },
    calls: { type: "string", default: "10000" },
    "decision-us": { type: "string", default: "45" },
    "settle-us": { type: "string", default: "25" },
    seed: { type: "string", default: "1" },
  },
});

const workersOfReplica = 2;
const base: FleetOptions = {
  seed: Number(values.seed),
  workers: Number(values.replicas) * workersOfReplica,
  keys: 1_000,
  callsPerSecond: Number(values.calls),
  limit: 1_000,
  seconds: 30,
  isSticky: false,
  terms: {
    decisionMs: Number(values["decision-us"]) / 1_000,
    settleMs: Number(values["settle-us"]) / 1_000,
    networkMs: 0.25,
    includeMs: 0.005,
    batch: 100,
    timeoutMs: 50,
    failures: 5,
    probeMs: 200,
    graceMs: 1_000,
  },
};

console.log(`${values.replicas} gateways with ${workersOfReplica} workers each, 1,000 keys\n`);
print(
  ["calls/s", "server busy", "p50 ms", "p99 ms", "p99.9 ms", "alone"],
  [0.25, 0.5, 1, 1.2, 1.4].map((part) => {
    const callsPerSecond = base.callsPerSecond * part;
    const result = runFleet({ ...base, callsPerSecond });
    const { utilisation, local } = result;
    const busy = `${(100 * utilisation).toFixed(0)} %`;
    return [String(callsPerSecond), busy, ...waitsOf(result), String(local)];
  }),
);

const faults = ["frozen", "killed", "flushed"] as const;
const fromMs = 65_000;
print(
  ["fault, 30 s", "calls of a key", "p99 ms", "most ms", "alone", "recovery ms", "worst/limit"],
  faults.flatMap((kind) =>
    [false, true].map((isSticky) => {
      // Every key calls one and a half times as often as its limit allows.
      const limit = (base.callsPerSecond * 60) / base.keys / 1.5;
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
    }),
  ),
);

function waitsOf({ waits }: FleetResult): string[] {
  return [0.5, 0.99, 0.999].map((share) => quantile(waits, share).toFixed(2));
}

function print(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  for (const row of all) {
    console.log(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
  }
  console.log("");
}
