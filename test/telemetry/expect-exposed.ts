import { expect } from "bun:test";
import { refusalRules } from "../../src/domain/errors/refusal.ts";
import type { PageMetric } from "./metrics-page.ts";
import { readExpression, type Selector } from "./promql.ts";

/** Labels that Prometheus adds to all that it reads. */
const ofPrometheus = ["job", "instance"];

/** Fails where an expression reads a metric or a label that the gateway does not expose. */
export function expectExposed(metrics: ReadonlyMap<string, PageMetric>, expression: string): void {
  const { selectors, groupings } = readExpression(expression);
  expect(selectors, expression).not.toEqual([]);
  const known = selectors.map((selector) => labelsOf(metrics, selector));
  selectors.forEach(({ matchers }, at) => {
    for (const { label, value } of matchers) {
      expect(known[at], expression).toContain(label);
      if (label === "rule") expect(refusalRules, expression).toContainValues(value.split("|"));
    }
  });
  for (const label of groupings) expect(known.flat(), expression).toContain(label);
}

/** Throws for a metric that is not exposed. */
export function labelsOf(
  metrics: ReadonlyMap<string, PageMetric>,
  { metric: name }: Pick<Selector, "metric">,
): readonly string[] {
  if (name === "up") return ofPrometheus;
  if (name === "ALERTS") return [...ofPrometheus, "alertname", "alertstate"];
  const [, histogram, part] = /^(\w+)_(bucket|sum|count)$/.exec(name) ?? [];
  const isPart = histogram !== undefined && metrics.get(histogram)?.type === "histogram";
  const metric = metrics.get(isPart ? histogram : name);
  if (metric === undefined || (metric.type === "histogram" && !isPart)) {
    throw new Error(`no metric of the gateway: ${name}`);
  }
  return [...metric.labels, ...ofPrometheus, ...(part === "bucket" ? ["le"] : [])];
}
