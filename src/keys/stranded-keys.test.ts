import { expect, test } from "bun:test";
import { plainKey } from "../../test/support/plain-key.ts";
import { secretOf } from "../../test/contracts/control-fixtures.ts";
import { findUnpooledUnits } from "./stranded-keys.ts";

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
