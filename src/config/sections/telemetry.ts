import { z } from "zod";
import { Secret } from "../../domain/keys/secret.ts";
import type { OtlpSettings } from "../../domain/settings.ts";
import { duration, flag, httpUrl, size, wholeNumber } from "../../settings/values.ts";

const headersSchema = z
  .record(
    z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "must be the name of a header"),
    z
      .string()
      .regex(/^[\x20-\x7e]+$/, "must be printable ASCII without line ends")
      .meta({ title: "secret" }),
  )
  .prefault({})
  .describe("Headers added to every request, such as a credential.");

const otlpSchema = z
  .strictObject({
    endpoint: httpUrl(
      "The collector for OTLP over HTTP, usually at port 4318; `/v1/traces` and " +
        "`/v1/metrics` are added.",
    ),
    headers: headersSchema,
    timeout: duration("10s", ["100ms", "1m"]).describe(
      "Longest time for sending one batch, retries included.",
    ),
    traces: flag(true).describe("Sends calls as traces."),
    sample_ratio: z
      .number()
      .min(0)
      .max(1)
      .prefault(1)
      .describe(
        "Share of the traces that are sent, from 0 to 1. Failed and slow calls always are.",
      ),
    slow_call: duration("30s", ["1ms", "24h"]).describe("Calls that take longer are always sent."),
    trust_caller: flag(false).describe(
      "The sampled flag of the caller's `traceparent` decides instead of `sample_ratio`.",
    ),
    queue: wholeNumber(2048, [64, 65_536]).describe(
      "Finished calls of a process that wait to be sent.",
    ),
    metrics: flag(true).describe("Sends the metrics."),
    metrics_interval: duration("1m", ["1s", "1h"]).describe("How often metrics are sent."),
  })
  .optional()
  .describe("Traces and metrics for an OpenTelemetry collector. By default nothing is sent.")
  .transform(
    (otlp): OtlpSettings | undefined =>
      otlp && {
        endpoint: otlp.endpoint,
        headers: Object.fromEntries(
          Object.entries(otlp.headers).map(([name, value]) => [name, new Secret(value)]),
        ),
        timeoutMs: otlp.timeout,
        sendsTraces: otlp.traces,
        sampleRatio: otlp.sample_ratio,
        slowCallMs: otlp.slow_call,
        trustsCaller: otlp.trust_caller,
        queueLimit: otlp.queue,
        sendsMetrics: otlp.metrics,
        metricsIntervalMs: otlp.metrics_interval,
      },
  );

export const telemetrySchema = z
  .strictObject({
    log_level: z
      .enum(["debug", "info", "warn", "error", "off"])
      .prefault("info")
      .describe("Minimum severity to log."),
    log_format: z.enum(["text", "json"]).prefault("text").describe("Format of log lines."),
    access_log: flag(true).describe("Logs requests of the API at `info`, else at `debug`."),
    log_buffer: size("1MiB", ["64KiB", "1GiB"]).describe("Buffer for a slow reader of the log."),
    upstream_messages: flag(false).describe(
      "Logs error messages of upstreams, which may quote prompts.",
    ),
    otlp: otlpSchema,
  })
  .prefault({})
  .describe("Logs, traces and metrics.")
  .transform((telemetry) => ({
    logLevel: telemetry.log_level,
    logFormat: telemetry.log_format,
    logBufferBytes: telemetry.log_buffer,
    logsAccess: telemetry.access_log,
    logsUpstreamMessages: telemetry.upstream_messages,
    otlp: telemetry.otlp,
  }));
