import { describe, expect, test } from "bun:test";
import { labelFamilies, mergeFamilies, renderPage, type MetricFamily } from "./families.ts";
import { Metrics } from "./metrics.ts";
import { counter, durationHistogram } from "./series.ts";

function counted(counts: Readonly<Record<string, number>>): MetricFamily {
  const calls = counter({ name: "calls_total", help: "Calls.", labelNames: ["model"] });
  for (const [model, count] of Object.entries(counts)) calls.of(model).value += count;
  return calls.collect();
}

function observed(...seconds: readonly number[]): MetricFamily {
  const histogram = durationHistogram({
    name: "call_seconds",
    help: "Time.",
    labelNames: ["model"],
    bounds: [1, 5],
  });
  for (const value of seconds) histogram.of("a b").observe(value * 1_000);
  return histogram.collect();
}

/** A whole process: its main thread, and its control thread. */
function processOf(number: number, openRequests: number): readonly MetricFamily[] {
  const main = new Metrics({
    sluice_open_requests: () => openRequests,
    program: { version: "1.2.3", commit: undefined },
  });
  const control = new Metrics({});
  main.counters.of("sluice_refusals_total", "bad_request").value += openRequests;
  control.counters.of("sluice_refusals_total", "bad_request").value += 1;
  return labelFamilies(mergeFamilies([...main.collect(), ...control.collect()]), String(number));
}

describe("the metrics of the two threads of a process", () => {
  test("have counters and histograms summed by their labels", () => {
    expect(mergeFamilies([counted({ "a b": 1, c: 2 }), counted({ "a b": 5, d: 1 })])).toEqual([
      counted({ "a b": 6, c: 2, d: 1 }),
    ]);
    expect(mergeFamilies([observed(0.5, 2), observed(0.25, 7)])).toEqual([
      observed(0.5, 2, 0.25, 7),
    ]);
  });

  test("stay as they are if the other thread says nothing", () => {
    const families = new Metrics({ sluice_open_requests: () => 3 }).collect();
    expect(mergeFamilies(families)).toEqual(families);
  });
});

test("the page of several processes has each metric once, with the series of each process", () => {
  const page = renderPage(mergeFamilies([...processOf(1, 3), ...processOf(2, 4)]));
  const lines = page.split("\n").filter((line) => line.includes("sluice_open_requests"));
  expect(lines.filter((line) => line.startsWith("#"))).toHaveLength(2);
  expect(lines.slice(2)).toEqual([
    'sluice_open_requests{process="1"} 3',
    'sluice_open_requests{process="2"} 4',
  ]);
  expect(page).toContain('sluice_refusals_total{process="1",rule="bad_request"} 4\n');
  expect(page).toContain('sluice_refusals_total{process="2",rule="bad_request"} 5\n');
  expect(page).toMatch(/^sluice_build_info\{process="1",version="1\.2\.3",.*\} 1$/m);
});
