import { expect, test } from "bun:test";
import { plainKey } from "../../test/support/plain-key.ts";
import { secretOf } from "../../test/contracts/control-fixtures.ts";
import { findStrandedKeys, findUnpooledUnits } from "./stranded-keys.ts";

test("units without a pool are counted once per key, not per secret", () => {
  const keys = [
    plainKey({ id: "key_a", provisionedUnits: 3 }),
    plainKey({ id: "key_b", provisionedUnits: 2, provisionedPool: "main" }),
    plainKey({ id: "key_c", provisionedUnits: 4 }),
    plainKey({ id: "key_d" }),
  ];
  const secrets = keys.flatMap((key) =>
    ["1", "2"].map((name) => ({ key, secret: secretOf(`${key.id}_${name}`, key.id) })),
  );
  expect(findUnpooledUnits(secrets)).toEqual({ keys: 2, units: 7 });
  expect(findUnpooledUnits([])).toEqual({ keys: 0, units: 0 });
});

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
