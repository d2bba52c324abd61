import { expect, test } from "bun:test";
import * as library from "prom-client";
import { Counter } from "./counter.ts";

test("it renders like the Prometheus client library", async () => {
  const registry = new library.Registry();
  const options = { name: "test_total", help: "Tests.", labelNames: ["route", "status"] };
  const theirs = new library.Counter({ ...options, registers: [registry] });
  const ours = new Counter(options);
  for (const [route, status, amount] of [
    ["/v1/models", "200", 1],
    ['odd "name" \\ here\n', "404", 2.5],
    ["/v1/models", "200", 41],
  ] as const) {
    theirs.labels(route, status).inc(amount);
    ours.add([route, status], amount);
  }
  expect(ours.render()).toBe(await registry.metrics());
});

test("a counter without labels exists from the start", async () => {
  const registry = new library.Registry();
  const options = { name: "plain_total", help: "Plain.", labelNames: [] };
  const theirs = new library.Counter({ ...options, registers: [registry] });
  const ours = new Counter(options);
  expect(ours.render()).toBe(await registry.metrics());
  theirs.inc(3);
  ours.add([], 3);
  expect(ours.render()).toBe(await registry.metrics());
});
