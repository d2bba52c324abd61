import { hostname } from "node:os";
import type { OtlpSettings } from "../../domain/settings.ts";
import { names } from "./conventions.ts";

/** The process that sends telemetry. */
export interface OtlpIdentity {
  /** Number of the process. */
  readonly process: number;
  readonly version: string;
}

/** Options of the exporter of a signal. */
export function exporterOptions(settings: OtlpSettings, signal: "traces" | "metrics") {
  const { endpoint, headers, timeoutMs } = settings;
  return {
    url: `${endpoint}/v1/${signal}`,
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.reveal()]),
    ),
    timeoutMillis: timeoutMs,
  };
}

export function resourceAttributes({ process: number, version }: OtlpIdentity) {
  const host = hostname();
  return {
    [names.serviceName]: "sluice",
    [names.serviceVersion]: version,
    [names.serviceInstanceId]: `${host}/${process.pid}/${number}`,
    [names.hostName]: host,
    [names.processPid]: process.pid,
  };
}
