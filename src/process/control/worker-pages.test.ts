import { expect, test } from "bun:test";
import { Counter } from "../../telemetry/metrics/counter.ts";
import { WorkerPages } from "./worker-pages.ts";

const gauge = "# HELP open Open.\n# TYPE open gauge\nopen 3\n";

function counted(count: number): string {
  const counter = new Counter({ name: "calls_total", help: "Calls.", labelNames: ["model"] });
  counter.add(["a"], count);
  return counter.render();
}

function countOf(pages: WorkerPages): number {
  return Number(/^calls_total\{model="a"\} (\d+)$/m.exec(pages.render())?.[1]);
}

test("counts of ended workers stay when a new process gets the same id", () => {
  const pages = new WorkerPages(1_000);
  pages.keep({ number: 1, pid: 7, startedAt: 1_001 }, `${counted(5)}\n${gauge}`);
  expect(pages.render()).toContain("open 3");
  pages.ended({ number: 1, pid: 7, startedAt: 1_001 });
  expect(pages.render()).not.toContain("open");
  pages.keep({ number: 1, pid: 7, startedAt: 2_000 }, counted(1));
  expect(countOf(pages)).toBe(6);
});

test("the counts of a worker that only seemed to have ended are not doubled", () => {
  const pages = new WorkerPages(1_000);
  const owner = { number: 1, pid: 7, startedAt: 1_001 };
  pages.keep(owner, counted(5));
  pages.ended(owner);
  pages.keep(owner, counted(6));
  expect(countOf(pages)).toBe(6);
});

test("counts of many ended workers are joined", () => {
  const pages = new WorkerPages(1_000);
  for (let pid = 1; pid <= 250; pid += 1) {
    pages.keep({ number: 1, pid, startedAt: 1_001 }, counted(2));
    pages.ended({ number: 1, pid, startedAt: 1_001 });
  }
  expect(countOf(pages)).toBe(500);
});

test("after a restart of control all counts begin at 0, those of living workers too", () => {
  const pages = new WorkerPages(1_000);
  const owner = { number: 1, pid: 7, startedAt: 500 };
  expect(pages.isUnread(owner)).toBe(true);
  pages.keep(owner, counted(40));
  expect(pages.isUnread(owner)).toBe(false);
  expect(countOf(pages)).toBe(0);
  pages.keep(owner, counted(42));
  pages.ended(owner);
  expect(countOf(pages)).toBe(2);
  expect(pages.isUnread({ number: 1, pid: 8, startedAt: 1_001 })).toBe(false);
});
