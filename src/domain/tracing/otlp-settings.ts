import type { Secret } from "../keys/secret.ts";
import type { SamplingSettings } from "./span-ids.ts";

/** Where telemetry is sent over OTLP, and what of it. */
export interface OtlpSettings extends SamplingSettings {
  /** Without `/v1/traces`. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, Secret>>;
  readonly timeoutMs: number;
  readonly sendsTraces: boolean;
  readonly sendsMetrics: boolean;
  /** Calls that take longer are always kept. */
  readonly slowCallMs: number;
  /** Ended calls that wait for the exporter, in each process. */
  readonly queueLimit: number;
  readonly metricsIntervalMs: number;
}
