import { expect, test } from "bun:test";
import { readExpression } from "./promql.ts";

test("the metrics, matchers and groupings of an expression are read", () => {
  const expression =
    'sum by (job, model) (rate(a_total{status=~"5..",note="a\\"b, c"}[5m])) / on (job) b > 0.5e1 ' +
    "unless max_over_time(count by (job) (c)[1h:1m]) offset 5m or absent(d) == bool 1";
  expect(readExpression(expression)).toEqual({
    selectors: [
      {
        metric: "a_total",
        matchers: [
          { label: "status", value: "5.." },
          { label: "note", value: 'a\\"b, c' },
        ],
      },
      { metric: "b", matchers: [] },
      { metric: "c", matchers: [] },
      { metric: "d", matchers: [] },
    ],
    groupings: ["job", "model", "job", "job"],
  });
});

test.each(["sum(a", "a)", "a ; b", 'a{b="c}'])("%s is no expression", (expression) => {
  expect(() => readExpression(expression)).toThrow();
});
