import { beforeAll, expect, test } from "bun:test";
import { YAML } from "bun";
import { z } from "zod";
import { readDocument } from "../support/documents.ts";
import { withoutProcess } from "../support/metrics-of.ts";
import { testNeeding } from "../support/requirement.ts";
import { expectExposed, labelsOf } from "./expect-exposed.ts";
import { pageAfterCalls, startMeasured } from "./exposed-metrics.ts";
import { readMetrics, seriesOf, type PageMetric } from "./metrics-page.ts";
import { readExpression } from "./promql.ts";
import { promtool } from "./promtool.ts";

const text = readDocument("deploy/prometheus/alerts.yaml");
const ruleSchema = z.strictObject({
  alert: z.string().regex(/^Sluice[A-Z]\w+$/),
  expr: z.string(),
  for: z.string().optional(),
  labels: z.strictObject({ severity: z.enum(["critical", "warning", "info"]) }),
  annotations: z.strictObject({
    summary: z.string(),
    description: z.string(),
    runbook_url: z.string(),
  }),
});
const groups = z
  .strictObject({
    groups: z.array(z.strictObject({ name: z.string(), rules: z.array(ruleSchema) })),
  })
  .parse(YAML.parse(text)).groups;
const rules = groups.flatMap((group) => group.rules);

let metrics: ReadonlyMap<string, PageMetric>;
/** Of a gateway before its first call. */
let firstSeries: readonly string[];
beforeAll(async () => {
  await using gateway = await startMeasured();
  const first = await fetch(`${gateway.adminUrl}/metrics`);
  firstSeries = seriesOf(withoutProcess(await first.text()));
  metrics = readMetrics(await pageAfterCalls(gateway));
});

test.each(rules)("$alert reads metrics and labels that the gateway exposes", ({ expr }) => {
  expectExposed(metrics, expr);
});

test.each(rules)(
  "$alert names labels in its texts that its result has",
  ({ expr, annotations }) => {
    const { selectors, groupings } = readExpression(expr);
    const known =
      groupings.length > 0 ? groupings : selectors.flatMap((each) => labelsOf(metrics, each));
    const named = JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g);
    for (const [, label = ""] of named) expect(known).toContain(label);
  },
);

// For Prometheus, a series that appears with 1 has not increased.
test("a counter whose increase is an alert exists before its first event", () => {
  const counters = rules.flatMap(({ expr }) => [...expr.matchAll(/increase\((\w+)(\{.*?\})?/g)]);
  expect(counters.length).toBeGreaterThan(3);
  for (const [, name = "", matchers = ""] of counters) {
    const start = `${name}${matchers}`;
    expect(
      firstSeries.filter((each) => each.startsWith(start)),
      start,
    ).not.toEqual([]);
  }
});

test("docs/observability.md lists every alert", () => {
  const bySeverity = readDocument("docs/observability.md").matchAll(
    /^- \*\*(\w+):\*\*((?:,?\s+`Sluice\w+`)+)/gm,
  );
  const listed = [...bySeverity].flatMap(([, severity, names = ""]) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, alert]) => `${severity} ${alert}`),
  );
  expect(listed.toSorted()).toEqual(
    rules.map(({ alert, labels }) => `${labels.severity} ${alert}`).toSorted(),
  );
});

const testRules = testNeeding("promtool");

testRules("promtool finds nothing wrong in the rules", async () => {
  const lint = ["check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml"];
  expect(await promtool(lint, { "alerts.yaml": text })).toBeUndefined();
});

/** Of a gateway in order; values by minute. */
const healthy: Readonly<Record<string, string>> = {
  'up{job="sluice"}': "1x90",
  sluice_open_requests: "3x90",
  'sluice_event_loop_delay_seconds{process="1"}': "0.002x90",
  'sluice_event_loop_delay_seconds{process="2"}': "0.002x90",
  'process_start_time_seconds{process="1"}': "1000x90",
  'process_open_fds{process="1"}': "60x90",
  'process_max_fds{process="1"}': "1024x90",
  'sluice_config_reloads_total{result="refused"}': "0x90",
  'sluice_calls_total{model="m",status="200"}': "0+600x90",
  'sluice_calls_total{model="m",status="503"}': "0+6x90",
  'sluice_http_requests_total{route="/v1/chat/completions",status="200"}': "0+600x90",
  'sluice_http_requests_total{route="/v1/chat/completions",status="503"}': "0+6x90",
  'sluice_http_requests_total{route="/readyz",status="503"}': "0+600x90",
  'sluice_first_event_seconds_bucket{model="m",le="1"}': "0+600x90",
  'sluice_first_event_seconds_bucket{model="m",le="30"}': "0+600x90",
  'sluice_first_event_seconds_bucket{model="m",le="+Inf"}': "0+600x90",
  'sluice_refusals_total{rule="ledger_full"}': "0x90",
  'sluice_refusals_total{rule="limits_unavailable"}': "0x90",
  'sluice_refusals_total{rule="requests_per_minute"}': "0+60x90",
  'sluice_limits_degraded{process="1"}': "0x90",
  'sluice_key_requests_total{key="k",answer="ok"}': "0+600x90",
  'sluice_key_requests_total{key="k",answer="limited"}': "0+6x90",
  'sluice_target_out{target="u/m"}': "0x90",
  'sluice_attempts_total{target="u/m",outcome="answered"}': "0+600x90",
  'sluice_attempts_total{target="u/m",outcome="unavailable"}': "0+6x90",
  'sluice_attempts_total{target="u/m",outcome="invalid-request"}': "0+600x90",
  'sluice_attempt_failures_total{upstream="u",kind="unavailable"}': "0+6x90",
  'sluice_attempt_failures_total{upstream="u",kind="bad-credential"}': "0x90",
  'sluice_guarantee_breaches_total{model="m"}': "0x90",
  'sluice_shed_calls_total{class="provisioned"}': "0x90",
  'sluice_shed_calls_total{class="on-demand"}': "0x90",
  'sluice_pool_queued{pool="pool:p",class="on-demand"}': "0x88 3 3",
  'sluice_ledger_queue_rows{process="1"}': "600x90",
  'sluice_ledger_queue_rows{process="2"}': "0x90",
  sluice_ledger_write_failures_total: "0x90",
  sluice_ledger_dead_letters_total: "0x90",
  sluice_ledger_spool_bytes: "300000000x90",
  sluice_keys_age_seconds: "1x90",
  sluice_log_lines_dropped_total: "0x90",
};

/** The series that differ, and the alerts that fire an hour and a half after the start. */
const troubles: readonly (readonly [series: Readonly<Record<string, string>>, ...string[]])[] = [
  [{}],
  [{ 'up{job="sluice"}': "0x90" }, "SluiceDown"],
  [{ 'up{job="sluice"}': "_x90" }, "SluiceDown"],
  [{ sluice_open_requests: "3x80 stale" }, "SluiceNoProcess"],
  [{ 'sluice_event_loop_delay_seconds{process="2"}': "0.002x70 stale" }, "SluiceProcessMissing"],
  [{ 'process_start_time_seconds{process="1"}': "1000x80 1001 1002 1003x7" }, "SluiceRestarting"],
  [{ 'sluice_config_reloads_total{result="refused"}': "0x85 1x4" }, "SluiceConfigurationRejected"],
  [
    { 'sluice_calls_total{model="m",status="503"}': "0+200x90" },
    "SluiceErrors",
    "SluiceModelFails",
  ],
  [
    {
      'sluice_calls_total{model="other",status="200"}': "0+1x90",
      'sluice_calls_total{model="other",status="500"}': "0+2x90",
    },
    "SluiceModelFails",
  ],
  [{ 'sluice_first_event_seconds_bucket{model="m",le="1"}': "0+300x90" }, "SluiceFirstTokenSlow"],
  [{ 'sluice_refusals_total{rule="ledger_full"}': "0+6x90" }, "SluiceRefusals"],
  [{ 'sluice_refusals_total{rule="limits_unavailable"}': "0+6x90" }, "SluiceRefusals"],
  [{ 'sluice_limits_degraded{process="1"}': "1x90" }, "SluiceLimitsDegraded"],
  // All are refused before they become calls.
  [
    {
      'sluice_ledger_queue_rows{process="1"}': "0x90",
      'sluice_calls_total{model="m",status="200"}': "60000x90",
      'sluice_calls_total{model="m",status="503"}': "600x90",
      'sluice_http_requests_total{route="/v1/chat/completions",status="200"}': "60000x90",
      'sluice_http_requests_total{route="/v1/chat/completions",status="503"}': "0+600x90",
    },
    "SluiceErrors",
  ],
  [{ 'sluice_key_requests_total{key="k",answer="limited"}': "0+200x90" }, "SluiceKeyAtItsLimit"],
  [{ 'sluice_target_out{target="u/m"}': "1x90" }, "SluiceTargetOut"],
  [
    { 'sluice_attempts_total{target="u/m",outcome="unavailable"}': "0+600x90" },
    "SluiceTargetFails",
  ],
  [
    { 'sluice_attempt_failures_total{upstream="u",kind="bad-credential"}': "0+6x90" },
    "SluiceTargetMisconfigured",
  ],
  [{ 'sluice_guarantee_breaches_total{model="m"}': "0x85 1x4" }, "SluiceGuaranteeMissed"],
  [{ 'sluice_shed_calls_total{class="provisioned"}': "0x85 1x4" }, "SluiceProvisionedShed"],
  [{ 'sluice_shed_calls_total{class="on-demand"}': "0+6x90" }, "SluiceOverloaded"],
  [{ 'sluice_event_loop_delay_seconds{process="1"}': "0.3x90" }, "SluiceLoopDelay"],
  [{ 'sluice_pool_queued{pool="pool:p",class="on-demand"}': "3x90" }, "SluiceQueueing"],
  [{ 'process_open_fds{process="1"}': "1000x90" }, "SluiceFileDescriptors"],
  [{ 'sluice_ledger_queue_rows{process="1"}': "0+1000x90" }, "SluiceLedgerBacklog"],
  [{ sluice_ledger_write_failures_total: "0+1x90" }, "SluiceLedgerRejected"],
  [{ sluice_ledger_spool_bytes: "600000000x90" }, "SluiceSpoolFills"],
  [{ sluice_ledger_dead_letters_total: "0x85 1x4" }, "SluiceLedgerDeadLetters"],
  [{ sluice_keys_age_seconds: "70x90" }, "SluiceKeysStale"],
  [{ sluice_log_lines_dropped_total: "0x85 9x4" }, "SluiceLogLinesDropped"],
];

/** Troubles from minute 60 to 70, and the alert that is firing then, but not three minutes later. */
const ended: readonly (readonly [series: Readonly<Record<string, string>>, alert: string])[] = [
  [{ 'sluice_refusals_total{rule="ledger_full"}': "0x60 6+6x9 60x20" }, "SluiceRefusals"],
  [{ 'sluice_calls_total{model="m",status="503"}': "0x60 300+300x9 3000x20" }, "SluiceErrors"],
  [
    {
      sluice_ledger_write_failures_total: "0x60 9+9x9 90x20",
      'sluice_ledger_queue_rows{process="1"}': "2x60 300+300x9 2x20",
    },
    "SluiceLedgerRejected",
  ],
];

testRules("alerts that name a trouble of now end with it", async () => {
  const tests = ended.map(([series, alert]) => {
    const expr = `count by (alertname) (ALERTS{alertstate="firing",alertname="${alert}"})`;
    const fires = { expr, exp_samples: [{ labels: `{alertname="${alert}"}`, value: 1 }] };
    return ruleTest(series, [
      { ...fires, eval_time: "69m" },
      { expr, eval_time: "73m", exp_samples: [] },
    ]);
  });
  expect(await failuresOf(tests)).toBeUndefined();
});

testRules("each alert fires for what it is about, and no other does", async () => {
  const firing = 'count by (alertname) (ALERTS{alertstate="firing"})';
  const tests = troubles.map(([series, ...alerts]) =>
    ruleTest(series, [
      {
        expr: firing,
        eval_time: "90m",
        exp_samples: alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
      },
    ]),
  );
  expect(await failuresOf(tests)).toBeUndefined();
  const fired = new Set(troubles.flatMap(([, ...alerts]) => alerts));
  expect([...fired].toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
});

/** Series that differ from the healthy ones, with what is expected of them. */
function ruleTest(series: Readonly<Record<string, string>>, expected: readonly object[]): object {
  return {
    interval: "1m",
    input_series: Object.entries({ ...healthy, ...series }).map(([name, values]) => ({
      series: withInstance(name),
      values,
    })),
    promql_expr_test: expected,
  };
}

/** Undefined: promtool found what the tests expect. */
function failuresOf(tests: readonly object[]): Promise<string | undefined> {
  const rulesOfAll = { rule_files: ["alerts.yaml"], evaluation_interval: "1m", tests };
  const files = { "alerts.yaml": text, "tests.yaml": JSON.stringify(rulesOfAll) };
  return promtool(["test", "rules", "tests.yaml"], files);
}

function withInstance(series: string): string {
  const [name = "", labels = ""] = series.split(/[{}]/);
  const both = [...labels.split(/,(?=\w+=)/), 'instance="a"'];
  if (!labels.includes("job=")) both.push('job="sluice"');
  return `${name}{${both.filter((each) => each !== "").join(",")}}`;
}
