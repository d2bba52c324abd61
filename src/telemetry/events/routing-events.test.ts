import { expect, test } from "bun:test";
import { recordedTelemetry } from "../../../test/support/recorded-telemetry.ts";

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
  const { routing, logged, page } = recordedTelemetry();
  routing.configured(routes("up/m", "other/m"));
  expect(page()).toContain('sluice_target_out{target="up/m"} 0');
  routing.targetOut(out);
  expect(page()).toContain('sluice_target_out{target="up/m"} 1');
  expect(page()).toContain('sluice_target_out{target="other/m"} 0');
  routing.targetReturned({ target: "up/m", key: undefined });
  expect(page()).toContain('sluice_target_out{target="up/m"} 0');
  expect(page()).toContain('sluice_target_outs_total{target="up/m",scope="all"} 1');
  expect(logged()).toEqual([
    expect.objectContaining({ level: "warn", target: "up/m", because: "5 failures in a row" }),
    expect.objectContaining({ level: "info", target: "up/m" }),
  ]);
});

test("a target out for one key is logged with the key and does not set the gauge", () => {
  const { routing, logged, page } = recordedTelemetry();
  routing.configured(routes("up/m"));
  routing.targetOut({ ...out, key: "key_bad" });
  expect(page()).toContain('sluice_target_out{target="up/m"} 0');
  expect(page()).toContain('sluice_target_outs_total{target="up/m",scope="key"} 1');
  expect(logged()).toEqual([expect.objectContaining({ level: "warn", key: "key_bad" })]);
});

test("probes are counted by outcome", () => {
  const { routing, page } = recordedTelemetry();
  routing.targetProbed("up/m", undefined);
  routing.targetProbed("up/m", { kind: "timed-out", message: "" });
  expect(page()).toContain('sluice_target_probes_total{target="up/m",outcome="answered"} 1');
  expect(page()).toContain('sluice_target_probes_total{target="up/m",outcome="timed-out"} 1');
});

test("a reload keeps what is out and drops removed targets", () => {
  const { routing, page } = recordedTelemetry();
  routing.configured(routes("up/m", "gone/m"));
  routing.targetOut(out);
  routing.targetOut({ ...out, target: "gone/m" });
  routing.configured(routes("up/m", "new/m"));
  routing.targetReturned({ target: "gone/m", key: undefined });
  expect(page()).toContain('sluice_target_out{target="up/m"} 1');
  expect(page()).toContain('sluice_target_out{target="new/m"} 0');
  expect(page()).not.toContain('sluice_target_out{target="gone/m"}');
  routing.configured(routes("gone/m"));
  expect(page()).toContain('sluice_target_out{target="gone/m"} 0');
});

test("retry decisions are counted by model", () => {
  const { routing, page } = recordedTelemetry();
  routing.retryDecided("alpha-sonnet-4", "next-target");
  routing.retryDecided("alpha-sonnet-4", "next-target");
  routing.retryDecided("alpha-sonnet-4", "budget");
  const name = "sluice_retry_decisions_total";
  expect(page()).toContain(`${name}{model="alpha-sonnet-4",decision="next-target"} 2`);
  expect(page()).toContain(`${name}{model="alpha-sonnet-4",decision="budget"} 1`);
});

test("what is configured has its counters at 0, and a reload resets none", () => {
  const { routing, page } = recordedTelemetry();
  routing.configured(routes("up/m"));
  const zeros = [
    'sluice_target_outs_total{target="up/m",scope="all"} 0',
    'sluice_target_outs_total{target="up/m",scope="key"} 0',
    'sluice_target_probes_total{target="up/m",outcome="answered"} 0',
    'sluice_malformed_events_total{upstream="up"} 0',
    'sluice_guarantee_breaches_total{model="alpha-sonnet-4"} 0',
  ];
  for (const zero of zeros) expect(page()).toContain(zero);
  routing.targetOut(out);
  routing.configured(routes("up/m"));
  expect(page()).toContain('sluice_target_outs_total{target="up/m",scope="all"} 1');
});

test("refused calls are counted by class, starting at 0", () => {
  const { overload, page } = recordedTelemetry();
  expect(page()).toContain('sluice_shed_calls_total{class="provisioned"} 0');
  overload.callRefused("on-demand");
  overload.callRefused("on-demand");
  overload.callRefused("spillover");
  expect(page()).toContain('sluice_shed_calls_total{class="on-demand"} 2');
  expect(page()).toContain('sluice_shed_calls_total{class="spillover"} 1');
});

test("the delay of the event loop is a gauge in seconds, read at each scrape", () => {
  const { overload, page } = recordedTelemetry();
  let delayMs = 50;
  overload.measureDelay(() => delayMs);
  expect(page()).toContain("\nsluice_event_loop_delay_seconds 0.05\n");
  delayMs = 125;
  expect(page()).toContain("\nsluice_event_loop_delay_seconds 0.125\n");
});

test("an overload logs two lines, however many calls it refuses", () => {
  const { overload, clock, logged } = recordedTelemetry();
  overload.changed(true);
  for (let call = 0; call < 100; call += 1) overload.callRefused("on-demand");
  clock.advance(12_000);
  overload.changed(false);
  expect(logged()).toEqual([
    expect.objectContaining({ level: "warn" }),
    expect.objectContaining({ level: "info", afterMs: 12_000 }),
  ]);
});
