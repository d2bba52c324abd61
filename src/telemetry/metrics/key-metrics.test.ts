import { expect, test } from "bun:test";
import { KeyMetrics } from "./key-metrics.ts";

test("requests of a key are counted by whose matter the answer was", () => {
  const keys = new KeyMetrics();
  for (const status of [200, 200, 302, 400, 401, 429, 499, 500, 503]) {
    keys.answered("key_1", status);
  }
  const counts = [...keys.render().matchAll(/answer="(\w+)"\} (\d+)/g)].map(
    ([, ...found]) => found,
  );
  expect(counts).toEqual([
    ["ok", "3"],
    ["refused", "2"],
    ["limited", "1"],
    ["left", "1"],
    ["failed", "2"],
  ]);
});

test("keys beyond the thousandth are counted together", () => {
  const keys = new KeyMetrics();
  for (let key = 0; key < 1_500; key += 1) keys.answered(`key_${key}`, 200);
  keys.answered("key_0", 200);
  const lines = keys
    .render()
    .split("\n")
    .filter((line) => line.startsWith("sluice_"));
  expect(lines).toHaveLength(1_001);
  expect(lines).toContain('sluice_key_requests_total{key="key_0",answer="ok"} 2');
  expect(lines).toContain('sluice_key_requests_total{key="other",answer="ok"} 500');
});
