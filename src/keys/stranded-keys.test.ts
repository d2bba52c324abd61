import { expect, test } from "bun:test";
import { plainKey } from "../../test/support/plain-key.ts";
import { secretOf } from "../../test/contracts/control-fixtures.ts";
import type { Pool } from "../domain/limits/capacity.ts";
import { findStrandedKeys, oversoldPools } from "./stranded-keys.ts";

test("keys of a plan or an environment that is not configured are counted once, not per secret", () => {
  const keys = [
    plainKey({ id: "key_a", plan: "gone", environment: "here", limits: undefined }),
    plainKey({ id: "key_b", plan: "gone", environment: "gone", limits: undefined }),
    plainKey({ id: "key_c", plan: "kept", environment: "here", limits: undefined }),
  ];
  const secrets = keys.flatMap((key) =>
    ["1", "2"].map((name) => ({ key, secret: secretOf(`${key.id}_${name}`, key.id) })),
  );
  const configured = { plans: new Map([["kept", {}]]), names: new Set(["here"]) };
  expect(findStrandedKeys(secrets, configured)).toEqual([
    { what: "environment", name: "gone", keys: 1 },
    { what: "plan", name: "gone", keys: 2 },
  ]);
});

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
