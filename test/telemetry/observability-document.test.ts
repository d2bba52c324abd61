import { expect, test } from "bun:test";
import { readDocument } from "../support/documents.ts";
import { testNeeding } from "../support/requirement.ts";
import { expectExposed } from "./expect-exposed.ts";
import { exposedPage } from "./exposed-metrics.ts";
import { readMetrics } from "./metrics-page.ts";
import { promtool } from "./promtool.ts";

const page = "docs/observability.md";
const exposed = await exposedPage();
const metrics = readMetrics(exposed);

test("the page lists every metric with its labels, and no other; it marks histograms", () => {
  const items = readDocument(page).matchAll(
    /^- ((?:`\w+(?:\{[\w,]+\})?`(?:, )?)+)(:\s+histogram)?/gm,
  );
  const documented = [...items].flatMap(([, list = "", histogram]) =>
    [...list.matchAll(/`((?:sluice|process)_[^`]+)`/g)].map(([, metric = ""]) =>
      histogram === undefined ? metric : `${metric} histogram`,
    ),
  );
  const withLabels = documented.map((metric) => /^\w+(?=\{)/.exec(metric)?.[0] ?? "");
  const silent = withLabels.filter((name) => metrics.get(name)?.labels.size === 0);
  expect(silent, "has no series: add a call that counts it to exposed-metrics.ts").toEqual([]);
  const defined = [...metrics].map(([name, { type, labels }]) => {
    // Every series has it.
    const own = [...labels].filter((label) => label !== "process");
    const names = own.length === 0 ? "" : `{${own.join(",")}}`;
    return `${name}${names}${type === "histogram" ? " histogram" : ""}`;
  });
  expect(documented.toSorted()).toEqual(defined.toSorted());
});

test("every counter ends in _total, and no other metric does", () => {
  const misnamed = [...metrics].filter(
    ([name, { type }]) => name.endsWith("_total") !== (type === "counter"),
  );
  expect(misnamed).toEqual([]);
});

test.each(["docs/observability.md", "docs/operations.md", "docs/runbook.md", "docs/processes.md"])(
  "%s names only metrics and labels that the gateway exposes",
  (path) => {
    const text = readDocument(path);
    const queries = [...text.matchAll(/```promql\n([\s\S]*?)```/g)];
    const examples = queries.flatMap(([, block = ""]) => block.trim().split(/\n(?! )/));
    const named = [...text.matchAll(/`(sluice_\w+(?:\{\w+="[^}]*\})?)[`{]/g)];
    for (const expression of [...examples, ...named.map(([, name = ""]) => name)]) {
      // A histogram is named without its parts.
      const part = metrics.get(expression)?.type === "histogram" ? "_count" : "";
      expectExposed(metrics, `${expression}${part}`);
    }
  },
);

testNeeding("promtool")("promtool finds nothing wrong in the page of metrics", async () => {
  expect(await promtool(["check", "metrics"], {}, exposed)).toBeUndefined();
});
