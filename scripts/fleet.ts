/**
 * Simulates what a hundred gateways share in one Valkey server, on virtual time: limits, the places
 * of a pool, and a key that makes most calls. `docs/scaling.md` explains the columns. `--only` names
 * one of them: limits, places, hot-key. `--leases off` asks the server about each call of that key.
 * `--replicas N`, `--calls N` (a second), `--decision-us N`, `--settle-us N` and `--seed N` change a
 * figure.
 */
import { parseArgs } from "node:util";
import { printHotKey } from "./fleet/hot-key.ts";
import { printLimits } from "./fleet/limits.ts";
import { printPlaces } from "./fleet/places.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    leases: { type: "string", default: "on" },
    replicas: { type: "string", default: "100" },
    calls: { type: "string", default: "10000" },
    "decision-us": { type: "string", default: "45" },
    "settle-us": { type: "string", default: "25" },
    seed: { type: "string", default: "1" },
  },
});

const workersOfReplica = 2;
const run = {
  seed: Number(values.seed),
  workers: Number(values.replicas) * workersOfReplica,
  callsPerSecond: Number(values.calls),
  decisionMs: Number(values["decision-us"]) / 1_000,
  settleMs: Number(values["settle-us"]) / 1_000,
};
const hasLeases = values.leases !== "off";

const scenarios: readonly [name: string, title: string, print: () => void][] = [
  ["limits", "1,000 keys with limits", () => printLimits(run)],
  ["places", "One pool with ten places for each worker", () => printPlaces(run)],
  [
    "hot-key",
    `One key with 60 % of all calls, leases ${hasLeases ? "on" : "off"}`,
    () => printHotKey({ ...run, hasLeases }),
  ],
];

console.log(`${values.replicas} gateways with ${workersOfReplica} workers each\n`);
for (const [name, title, print] of scenarios) {
  if (values.only !== undefined && values.only !== name) continue;
  console.log(`${title}\n`);
  print();
}
