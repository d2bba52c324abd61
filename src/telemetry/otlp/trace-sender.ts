import type { OtlpSettings } from "../../domain/settings.ts";
import { exporterOptions, resourceAttributes, type OtlpIdentity } from "./exporter-options.ts";
import { SpanBuilder, type Span } from "./span-builder.ts";

/** Sends spans to a collector. */
export interface TraceSender {
  readonly builder: SpanBuilder;
  /** Resolves once the collector has them; rejects if it does not within the timeout. */
  send(spans: readonly Span[]): Promise<void>;
  close(): Promise<void>;
}

/** Loads the packages of OpenTelemetry, which takes 20 MB and 0.1 s, and opens an exporter. */
export async function openTraceSender(
  settings: OtlpSettings,
  identity: OtlpIdentity,
): Promise<TraceSender> {
  const [api, { resourceFromAttributes }, { OTLPTraceExporter }] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/resources"),
    import("@opentelemetry/exporter-trace-otlp-proto"),
  ]);
  const exporter = new OTLPTraceExporter(exporterOptions(settings, "traces"));
  const resource = resourceFromAttributes(resourceAttributes(identity));
  return {
    builder: new SpanBuilder({ api, resource, version: identity.version }),
    send: (spans) =>
      new Promise((resolve, reject) => {
        exporter.export([...spans], ({ code, error }) => {
          if (code === 0) resolve();
          else reject(error ?? new Error("the collector did not take the spans"));
        });
      }),
    close: () => exporter.shutdown(),
  };
}
