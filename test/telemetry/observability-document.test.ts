import { expect, test } from "bun:test";
import { readDocument, tableRows } from "../support/documents.ts";
import { testNeeding } from "../support/requirement.ts";
import { expectExposed } from "./expect-exposed.ts";
import { exposedPage } from "./exposed-metrics.ts";
import { readMetrics } from "./metrics-page.ts";
import { promtool } from "./promtool.ts";

const page = "docs/observability.md";
const exposed = await exposedPage();
const metrics = readMetrics(exposed);

test("the page lists every metric with its type and labels, and no other", () => {
  const documented = tableRows(page)
    .filter(([, type]) => ["counter", "gauge", "histogram"].includes(type ?? ""))
    .map(([metric, type]) => `${type} ${metric?.replaceAll("`", "")}`);
  const defined = [...metrics].map(([name, { type, labels }]) => {
    // Every series has it.
    const own = [...labels].filter((label) => label !== "process");
    const names = own.length === 0 ? "" : `{${own.join(",")}}`;
    return `${type} ${name}${names}`;
  });
  expect(documented.toSorted()).toEqual(defined.toSorted());
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
