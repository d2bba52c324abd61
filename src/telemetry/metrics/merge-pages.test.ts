import { describe, expect, test } from "bun:test";
import { Counter } from "./counter.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { labelPage, mergePages } from "./merge-pages.ts";
import { Metrics } from "./metrics.ts";

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

const reading = {
  cpuSeconds: 1,
  residentBytes: 10,
  openFiles: 2,
  mostFiles: 100,
  startedAt: 1_000,
};

/** The page of a whole process: as of its main thread, and as of its control thread. */
function pageOf(number: number, openRequests: number): string {
  const main = new Metrics({
    openRequests: () => openRequests,
    version: "1.2.3",
    processes: () => [reading],
  });
  const control = new Metrics({});
  main.counters.add("sluice_refusals_total", ["bad_request"], openRequests);
  control.counters.add("sluice_refusals_total", ["bad_request"], 1);
  return labelPage(mergePages([main.render(), control.render()]), String(number));
}

describe("the pages of the two threads of a process", () => {
  test("have counters and histograms summed by their labels", () => {
    expect(mergePages([counted({ "a b": 1, c: 2 }), counted({ "a b": 5, d: 1 })])).toBe(
      counted({ "a b": 6, c: 2, d: 1 }),
    );
    expect(mergePages([observed(0.5, 2), observed(0.25, 7)])).toBe(observed(0.5, 2, 0.25, 7));
  });

  test("stay as they are if the other thread says nothing", () => {
    const page = new Metrics({ openRequests: () => 3, residentBytes: () => 5 }).render();
    expect(mergePages([page])).toBe(page);
    expect(mergePages([page, ""])).toBe(page);
  });

  test("have the longer delay of their loops", () => {
    const pageOfDelay = (delayMs: number): string => {
      const metrics = new Metrics({});
      metrics.measureDelay(() => delayMs);
      return metrics.render();
    };
    const merged = mergePages([pageOfDelay(250), pageOfDelay(500)]);
    expect(merged).toContain("\nsluice_event_loop_delay_seconds 0.5\n");
  });
});

describe("a page with the number of its process", () => {
  test("has it in each series, beside the labels that were there", () => {
    const page = `${counted({ "a b": 1 })}\n# HELP open Open.\n# TYPE open gauge\nopen 3\n`;
    const labelled = labelPage(page, "2");
    expect(labelled).toContain('\ncalls_total{process="2",model="a b"} 1\n');
    expect(labelled).toContain('\nopen{process="2"} 3\n');
    expect(labelled.split("\n").filter((line) => line.startsWith("#"))).toEqual(
      page.split("\n").filter((line) => line.startsWith("#")),
    );
  });

  test("keeps values of labels with braces, quotes and spaces", () => {
    const odd = 'a {b} "c" \\ d';
    const [, , line = ""] = labelPage(counted({ [odd]: 1 }), "1").split("\n");
    const [, , before = ""] = counted({ [odd]: 1 }).split("\n");
    expect(line.replace('process="1",', "")).toBe(before);
  });
});

describe("the pages of several processes", () => {
  test("have each metric once, with the series of each process", () => {
    const joined = mergePages([pageOf(1, 3), pageOf(2, 4)]);
    for (const [name, one, two] of [
      ["sluice_open_requests", 3, 4],
      ["process_start_time_seconds", 1_000, 1_000],
      ["process_resident_memory_bytes", 10, 10],
    ] as const) {
      const lines = joined.split("\n").filter((line) => line.includes(name));
      expect(lines.filter((line) => line.startsWith("#"))).toHaveLength(2);
      expect(lines.slice(2)).toEqual([
        `${name}{process="1"} ${one}`,
        `${name}{process="2"} ${two}`,
      ]);
    }
    expect(joined).toContain('sluice_refusals_total{process="1",rule="bad_request"} 4\n');
    expect(joined).toContain('sluice_refusals_total{process="2",rule="bad_request"} 5\n');
    expect(joined).toMatch(/^sluice_build_info\{process="1",version="1\.2\.3",.*\} 1$/m);
  });

  test("are one page if there is one process", () => {
    expect(mergePages([pageOf(1, 3)])).toBe(pageOf(1, 3));
  });
});
