import { expect, test } from "bun:test";
import { Metrics } from "../metrics/metrics.ts";
import { formatLabels, renderMetric } from "../metrics/text-format.ts";
import { readPage } from "./read-page.ts";

test("a page is read as it was rendered, with odd labels", () => {
  const odd = 'a "b" \\ {c} \n d';
  const labels = formatLabels(["one", "other"], [odd, "x"]);
  const page = renderMetric("counter", { name: "some_total", help: "Some help." }, [[labels, 2]]);
  expect(readPage(page)).toEqual([
    {
      name: "some_total",
      help: "Some help.",
      type: "counter",
      samples: [{ name: "some_total", labels: { one: odd, other: "x" }, value: 2 }],
    },
  ]);
});

test("every metric of the gateway is read", () => {
  const page = new Metrics({}).render();
  const named = [...page.matchAll(/^# TYPE (\w+) /gm)].map(([, name = ""]) => name);
  expect(readPage(page).map(({ name }) => name)).toEqual(named);
});
