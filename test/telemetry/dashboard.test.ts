import { expect, test } from "bun:test";
import { testNeeding } from "../support/requirement.ts";
import { dashboard, queries, withValues } from "./dashboard.ts";
import { expectExposed, labelsOf } from "./expect-exposed.ts";
import { exposedMetrics } from "./exposed-metrics.ts";
import { readExpression } from "./promql.ts";
import { promtool } from "./promtool.ts";

const { panels, templating } = dashboard;
const metrics = await exposedMetrics();

test.each(queries)("$expr reads metrics and labels that the gateway exposes", (query) => {
  const { expression, legendFormat } = query;
  expect(expression).not.toContain("$");
  const { selectors, groupings } = readExpression(expression);
  expectExposed(metrics, expression);
  const known =
    groupings.length > 0 ? groupings : selectors.flatMap((each) => labelsOf(metrics, each));
  const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
  expect(named.filter((label) => !known.includes(label))).toEqual([]);
});

test("every metric of the gateway has a place on the dashboard", () => {
  const read = new Set(
    queries.flatMap(({ expression }) =>
      readExpression(expression).selectors.map(({ metric }) => metric),
    ),
  );
  const missing = [...metrics].flatMap(([name, { type }]) => {
    const parts = type === "histogram" ? [`${name}_bucket`] : [name];
    return parts.some((part) => read.has(part)) ? [] : [name];
  });
  expect(missing).toEqual([]);
});

test("every query names the gateways that were chosen, and variables are defined before use", () => {
  for (const { expr } of queries) {
    for (const { metric, matchers } of readExpression(expr.replaceAll("$__rate_interval", "5m"))
      .selectors) {
      const own = matchers.map(({ label, value }) => `${label} ${value}`);
      expect(own).toContain("instance $instance");
      if (metric !== "ALERTS") expect(own).toContain("job $job");
    }
  }
  const variables = templating.list.map(({ name }) => name);
  expect(variables).toEqual(["datasource", "job", "instance"]);
  for (const { definition } of templating.list) {
    if (definition === undefined) continue;
    const [, selector = "", label] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? [];
    expectExposed(metrics, `count by (${label}) (${withValues(selector)})`);
  }
});

test("no panel has the id or the place of another", () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    expect(x + w).toBeLessThanOrEqual(24);
    return Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`);
  });
  expect(new Set(cells).size).toBe(cells.length);
});

testNeeding("promtool")("promtool can parse every query of the dashboard", async () => {
  const rules = queries.map(({ expression }, at) => ({
    record: `query_${at}`,
    expr: expression,
  }));
  const file = JSON.stringify({ groups: [{ name: "dashboard", rules }] });
  expect(
    await promtool(["check", "rules", "--lint-fatal", "rules.yaml"], { "rules.yaml": file }),
  ).toBeUndefined();
});
