import { expect, test } from "bun:test";
import { Histogram, Registry } from "prom-client";
import { DurationHistogram } from "./duration-histogram.ts";

const options = {
  name: "test_seconds",
  help: "Time of a test.",
  labelNames: ["model", "streamed"],
  bounds: [0.01, 0.5, 2],
};

test("it renders like the Prometheus client library", async () => {
  const registry = new Registry();
  const { name, help, labelNames, bounds } = options;
  const theirs = new Histogram({
    name,
    help,
    labelNames,
    buckets: [...bounds],
    registers: [registry],
  });
  const ours = new DurationHistogram(options);
  // On the bounds, between them, below and above.
  for (const seconds of [0, 0.01, 0.010_001, 0.5, 0.25, 2, 2.5, 1_000]) {
    for (const [model, streamed] of [
      ["alpha", "true"],
      ['odd "name" \\ here', "false"],
    ] as const) {
      theirs.labels(model, streamed).observe(seconds);
      ours.series([model, streamed]).observe(seconds);
    }
  }
  expect(ours.render()).toBe(await registry.metrics());
});

test("a series is looked up by its label values", () => {
  const histogram = new DurationHistogram(options);
  histogram.series(["alpha", "true"]).observe(1);
  histogram.series(["alpha", "true"]).observe(1);
  expect(histogram.series(["alpha", "true"]).count).toBe(2);
  expect(histogram.series(["alpha", "false"]).count).toBe(0);
});
