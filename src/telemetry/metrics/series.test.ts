import { expect, test } from "bun:test";
import * as library from "prom-client";
import { renderPage } from "./families.ts";
import { counter, durationHistogram } from "./series.ts";

test("a counter renders like the Prometheus client library", async () => {
  const registry = new library.Registry();
  const options = { name: "test_total", help: "Tests.", labelNames: ["route", "status"] };
  const theirs = new library.Counter({ ...options, registers: [registry] });
  const ours = counter(options);
  for (const [route, status, amount] of [
    ["/v1/models", "200", 1],
    ['odd "name" \\ here\n', "404", 2.5],
    ["/v1/models", "200", 41],
  ] as const) {
    theirs.labels(route, status).inc(amount);
    ours.of(route, status).value += amount;
  }
  expect(renderPage([ours.collect()])).toBe(await registry.metrics());
});

test("a counter without labels exists from the start", async () => {
  const registry = new library.Registry();
  const options = { name: "plain_total", help: "Plain.", labelNames: [] };
  const theirs = new library.Counter({ ...options, registers: [registry] });
  const ours = counter(options);
  expect(renderPage([ours.collect()])).toBe(await registry.metrics());
  theirs.inc(3);
  ours.of().value += 3;
  expect(renderPage([ours.collect()])).toBe(await registry.metrics());
});

test("a histogram renders like the Prometheus client library", async () => {
  const registry = new library.Registry();
  const about = {
    name: "test_seconds",
    help: "Time of a test.",
    labelNames: ["model", "streamed"],
  };
  const bounds = [0.01, 0.5, 2];
  const theirs = new library.Histogram({ ...about, buckets: [...bounds], registers: [registry] });
  const ours = durationHistogram({ ...about, bounds });
  // On the bounds, between them, below and above.
  for (const seconds of [0, 0.01, 0.010_001, 0.5, 0.25, 2, 2.5, 1_000]) {
    for (const [model, streamed] of [
      ["alpha", "true"],
      ['odd "name" \\ here', "false"],
    ] as const) {
      theirs.labels(model, streamed).observe(seconds);
      ours.of(model, streamed).observe(seconds * 1_000);
    }
  }
  expect(renderPage([ours.collect()])).toBe(await registry.metrics());
});
