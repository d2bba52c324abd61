import { expect, test } from "bun:test";
import type { LimitScope } from "../../../domain/limits/limit-scope.ts";
import { OwnWindows } from "./own-windows.ts";
import { WindowNames } from "./scopes.ts";

test("whoever reads a window with another period leaves it as it was", () => {
  const names = new WindowNames(1);
  const guarantee = (seconds: number): readonly LimitScope[] => [
    { id: "key", unit: "tokens", window: { seconds }, limit: seconds },
  ];
  const all = new OwnWindows(0);
  const [own] = all.of(names.of(guarantee(120)), 0);
  own?.window.charge(7);
  const before = { scope: own?.scope, counted: own?.window.counted, charged: 7 };
  const [read] = all.peek(names.of(guarantee(60)), 1);
  expect([read?.scope.limit, read?.window.charged]).toEqual([60, 7]);
  const { scope, window } = own ?? {};
  expect({ scope, counted: window?.counted, charged: window?.charged }).toEqual(before);
});
