import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { pageOf } from "../../../test/support/metrics-page.ts";
import { zeroGauges } from "../../../test/support/zero-gauges.ts";
import { createLogger } from "../log/logger.ts";
import { Metrics } from "../metrics/metrics.ts";
import { routingEvents } from "./routing-events.ts";

function start() {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const logger = createLogger({ level: "debug", format: "json", clock: new ManualClock(), write });
  const metrics = new Metrics(zeroGauges);
  const events = routingEvents({ logger, metrics });
  const logged = (): unknown[] => lines.map((line): unknown => JSON.parse(line));
  return { events, metrics, logged };
}

const routes = (...targets: readonly string[]) => ({
  targets: new Set(targets),
  aliases: new Set(["alpha-sonnet-4"]),
});

const out = {
  target: "up/m",
  key: undefined,
  forMs: 10_000,
  times: 2,
  because: "5 failures in a row",
};

test("a target that goes out and one that returns log a line each, and a gauge shows the state", () => {
  const { events, metrics, logged } = start();
  events.configured(routes("up/m", "other/m"));
  expect(pageOf(metrics)).toContain('sluice_target_out{target="up/m"} 0');
  events.targetOut(out);
  expect(pageOf(metrics)).toContain('sluice_target_out{target="up/m"} 1');
  expect(pageOf(metrics)).toContain('sluice_target_out{target="other/m"} 0');
  events.targetReturned({ target: "up/m", key: undefined });
  expect(pageOf(metrics)).toContain('sluice_target_out{target="up/m"} 0');
  expect(pageOf(metrics)).toContain('sluice_target_outs_total{target="up/m",scope="all"} 1');
  expect(logged()).toEqual([
    expect.objectContaining({ level: "warn", target: "up/m", because: "5 failures in a row" }),
    expect.objectContaining({ level: "info", target: "up/m" }),
  ]);
});

test("a target out for one key is logged with the key and does not set the gauge", () => {
  const { events, metrics, logged } = start();
  events.configured(routes("up/m"));
  events.targetOut({ ...out, key: "key_bad" });
  expect(pageOf(metrics)).toContain('sluice_target_out{target="up/m"} 0');
  expect(pageOf(metrics)).toContain('sluice_target_outs_total{target="up/m",scope="key"} 1');
  expect(logged()).toEqual([expect.objectContaining({ level: "warn", key: "key_bad" })]);
});

test("probes are counted by outcome", () => {
  const { events, metrics } = start();
  events.targetProbed("up/m", undefined);
  events.targetProbed("up/m", { kind: "timed-out", message: "" });
  expect(pageOf(metrics)).toContain(
    'sluice_target_probes_total{target="up/m",outcome="answered"} 1',
  );
  expect(pageOf(metrics)).toContain(
    'sluice_target_probes_total{target="up/m",outcome="timed-out"} 1',
  );
});

test("a reload keeps what is out and drops removed targets", () => {
  const { events, metrics } = start();
  events.configured(routes("up/m", "gone/m"));
  events.targetOut(out);
  events.targetOut({ ...out, target: "gone/m" });
  events.configured(routes("up/m", "new/m"));
  events.targetReturned({ target: "gone/m", key: undefined });
  expect(pageOf(metrics)).toContain('sluice_target_out{target="up/m"} 1');
  expect(pageOf(metrics)).toContain('sluice_target_out{target="new/m"} 0');
  expect(pageOf(metrics)).not.toContain('sluice_target_out{target="gone/m"}');
  events.configured(routes("gone/m"));
  expect(pageOf(metrics)).toContain('sluice_target_out{target="gone/m"} 0');
});

test("retry decisions are counted by model", () => {
  const { events, metrics } = start();
  events.retryDecided("alpha-sonnet-4", "next-target");
  events.retryDecided("alpha-sonnet-4", "next-target");
  events.retryDecided("alpha-sonnet-4", "budget");
  const name = "sluice_retry_decisions_total";
  expect(pageOf(metrics)).toContain(`${name}{model="alpha-sonnet-4",decision="next-target"} 2`);
  expect(pageOf(metrics)).toContain(`${name}{model="alpha-sonnet-4",decision="budget"} 1`);
});

test("what is configured has its counters at 0, and a reload resets none", () => {
  const { events, metrics } = start();
  events.configured(routes("up/m"));
  const zeros = [
    'sluice_target_outs_total{target="up/m",scope="all"} 0',
    'sluice_target_outs_total{target="up/m",scope="key"} 0',
    'sluice_target_probes_total{target="up/m",outcome="answered"} 0',
    'sluice_malformed_events_total{upstream="up"} 0',
    'sluice_guarantee_breaches_total{model="alpha-sonnet-4"} 0',
  ];
  for (const zero of zeros) expect(pageOf(metrics)).toContain(zero);
  events.targetOut(out);
  events.configured(routes("up/m"));
  expect(pageOf(metrics)).toContain('sluice_target_outs_total{target="up/m",scope="all"} 1');
});
