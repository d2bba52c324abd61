import { type MetricFamily, renderPage } from "../../src/telemetry/metrics/families.ts";

/** The page of metrics in the Prometheus text format. */
export function pageOf(metrics: { collect(): readonly MetricFamily[] }): string {
  return renderPage(metrics.collect());
}
