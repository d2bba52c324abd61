import { expect, test } from "bun:test";
import type { Pool } from "../domain/limits/capacity.ts";
import { oversoldPools } from "./oversold-pools.ts";

function poolOf(name: string, tokensPerMinute: number): Pool {
  return {
    name,
    kind: "shared",
    tokensPerMinute,
    maxInFlight: undefined,
    onDemandFloorPercent: 20,
    unitTokensPerMinute: 10_000,
  };
}

test("oversold pools are listed, and those no longer configured", () => {
  const pools = new Map([
    ["full", poolOf("full", 1_000_000)],
    ["shrunk", poolOf("shrunk", 999_000)],
    ["unsold", poolOf("unsold", 1)],
  ]);
  const sold = new Map([
    ["full", 78],
    ["shrunk", 79],
    ["gone", 1],
  ]);
  expect(oversoldPools(pools, sold)).toEqual([
    { pool: "shrunk", soldUnits: 79, sellableUnits: 78, isConfigured: true },
    { pool: "gone", soldUnits: 1, sellableUnits: 0, isConfigured: false },
  ]);
});
