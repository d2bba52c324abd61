import { expect, test } from "bun:test";
import { Counter } from "./counter.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { mergeEnded, mergePages } from "./merge-pages.ts";
import { Metrics } from "./metrics.ts";
import { renderProcesses } from "./process-metrics.ts";

function counted(counts: Readonly<Record<string, number>>): string {
  const counter = new Counter({ name: "calls_total", help: "Calls.", labelNames: ["model"] });
  for (const [model, count] of Object.entries(counts)) counter.add([model], count);
  return counter.render();
}

function observed(...seconds: readonly number[]): string {
  const histogram = new DurationHistogram({
    name: "call_seconds",
    help: "Time.",
    labelNames: ["model"],
    bounds: [1, 5],
  });
  for (const value of seconds) histogram.series(["a b"]).observe(value);
  return histogram.render();
}

test("two processes of one number began when the later one began, and use what both use", () => {
  const reading = { worker: "1", cpuSeconds: 1, residentBytes: 10, openFiles: 2, mostFiles: 100 };
  const page = (startedAt: number): string =>
    renderProcesses([{ ...reading, startedAt }]).join("\n");
  const merged = mergePages([page(1_000), page(1_060)]);
  expect(merged).toContain('process_start_time_seconds{worker="1"} 1060\n');
  expect(merged).toContain('process_max_fds{worker="1"} 100\n');
  expect(merged).toContain('process_resident_memory_bytes{worker="1"} 20\n');
});

test("counters and histograms of processes are summed by their labels", () => {
  expect(mergePages([counted({ "a b": 1, c: 2 }), counted({ "a b": 5, d: 1 })])).toBe(
    counted({ "a b": 6, c: 2, d: 1 }),
  );
  expect(mergePages([observed(0.5, 2), observed(0.25, 7)])).toBe(observed(0.5, 2, 0.25, 7));
});

test("the page of one process stays as it is", () => {
  const page = new Metrics({ openRequests: () => 3, residentBytes: () => 5 }).render();
  expect(mergePages([page])).toBe(page);
});

test("gauges are summed, ages are not", () => {
  const page = (openRequests: number, age: number): string =>
    new Metrics({ openRequests: () => openRequests, keysAgeSeconds: () => age }).render();
  const merged = mergePages([page(2, 0.5), page(3, 0.25)]);
  expect(merged).toContain("\nsluice_open_requests 5\n");
  expect(merged).toContain("\nsluice_keys_age_seconds 0.5\n");
});

test("of a process that has ended its counts stay, and its gauges go", () => {
  const gauge = "# HELP open Open.\n# TYPE open gauge\nopen 3\n";
  expect(mergeEnded([counted({ a: 1 }), gauge, counted({ a: 2 })])).toBe(counted({ a: 3 }));
  expect(mergeEnded([])).toBe("");
});
