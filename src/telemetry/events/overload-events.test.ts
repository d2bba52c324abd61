import { expect, test } from "bun:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { pageOf } from "../../../test/support/metrics-page.ts";
import { zeroGauges } from "../../../test/support/zero-gauges.ts";
import { createLogger } from "../log/logger.ts";
import { overloadEvents } from "./routing-events.ts";
import { Metrics } from "../metrics/metrics.ts";

function start() {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const clock = new ManualClock();
  const logger = createLogger({ level: "debug", format: "json", clock, write });
  const metrics = new Metrics(zeroGauges);
  const events = overloadEvents({ logger, metrics, clock });
  const logged = (): unknown[] => lines.map((line): unknown => JSON.parse(line));
  return { events, metrics, clock, logged };
}

test("refused calls are counted by class, starting at 0", () => {
  const { events, metrics } = start();
  expect(pageOf(metrics)).toContain('sluice_shed_calls_total{class="provisioned"} 0');
  events.callRefused("on-demand");
  events.callRefused("on-demand");
  events.callRefused("spillover");
  const page = pageOf(metrics);
  expect(page).toContain('sluice_shed_calls_total{class="on-demand"} 2');
  expect(page).toContain('sluice_shed_calls_total{class="spillover"} 1');
});

test("the delay of the event loop is a gauge in seconds, read at each scrape", () => {
  const { events, metrics } = start();
  expect(pageOf(metrics)).toContain("\nsluice_event_loop_delay_seconds 0\n");
  let delayMs = 50;
  events.measureDelay(() => delayMs);
  expect(pageOf(metrics)).toContain("\nsluice_event_loop_delay_seconds 0.05\n");
  delayMs = 125;
  expect(pageOf(metrics)).toContain("\nsluice_event_loop_delay_seconds 0.125\n");
});

test("an overload logs two lines, however many calls it refuses", () => {
  const { events, clock, logged } = start();
  events.changed(true);
  for (let call = 0; call < 100; call += 1) events.callRefused("on-demand");
  clock.advance(12_000);
  events.changed(false);
  expect(logged()).toEqual([
    expect.objectContaining({ level: "warn" }),
    expect.objectContaining({ level: "info", afterMs: 12_000 }),
  ]);
});
