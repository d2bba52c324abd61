import { expect, test } from "bun:test";
import { z } from "zod";
import { readDocument } from "../support/documents.ts";
import { testNeeding } from "../support/requirement.ts";
import { expectExposed, labelsOf } from "./expect-exposed.ts";
import { exposedMetrics } from "./exposed-metrics.ts";
import { readExpression } from "./promql.ts";
import { promtool } from "./promtool.ts";

const source = z.strictObject({
  type: z.literal("prometheus"),
  uid: z.literal("$" + "{datasource}"),
});
const place = z.strictObject({ h: z.number(), w: z.number(), x: z.number(), y: z.number() });
const targetSchema = z.looseObject({
  datasource: source,
  expr: z.string(),
  legendFormat: z.string(),
});
const panelSchema = z.looseObject({ id: z.number(), title: z.string(), gridPos: place });
const dashboardSchema = z.looseObject({
  panels: z.array(
    z.discriminatedUnion("type", [
      panelSchema.extend({ type: z.literal("row") }),
      panelSchema.extend({
        type: z.enum(["stat", "state-timeline", "timeseries"]),
        datasource: source,
        targets: z.array(targetSchema).min(1),
      }),
    ]),
  ),
  templating: z.object({
    list: z.array(
      z.looseObject({ name: z.string(), type: z.string(), definition: z.string().optional() }),
    ),
  }),
  annotations: z.object({
    list: z.array(z.looseObject({ datasource: source, expr: z.string(), titleFormat: z.string() })),
  }),
});

const dashboard = dashboardSchema.parse(JSON.parse(readDocument("deploy/grafana/sluice.json")));
const { panels, annotations, templating } = dashboard;
const queries = [
  ...panels.flatMap((panel) => (panel.type === "row" ? [] : panel.targets)),
  ...annotations.list.map(({ expr, titleFormat }) => ({ expr, legendFormat: titleFormat })),
].map(({ expr, legendFormat }) => ({ expression: withValues(expr), legendFormat, expr }));
const metrics = await exposedMetrics();

/** An expression with values in place of Grafana's variables. */
function withValues(text: string): string {
  return text
    .replaceAll("$__rate_interval", "5m")
    .replaceAll("$job", "sluice")
    .replaceAll("$instance", ".*");
}

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
  // The panel shows the same number as the system reports it.
  expect(missing).toEqual(["sluice_resident_memory_bytes"]);
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
