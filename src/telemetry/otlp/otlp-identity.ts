import { hostname } from "node:os";
import type { Clock } from "../../domain/clock.ts";
import type { OtlpSettings } from "../../domain/settings.ts";
import { hasSettledWithin } from "../../domain/waiting/wait.ts";
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

/** How much longer than its timeout a request of an exporter may take. */
const graceMs = 500;

interface Exporter<Items> {
  export(items: Items, done: (result: ExportResult) => void): void;
}

interface ExportResult {
  readonly code: number;
  readonly error?: Error;
}

/** Rejects if not taken in time: the exporter's own timeout does not cover connecting. */
export async function exportInTime<Items>(
  exporter: Exporter<Items>,
  items: Items,
  { timeoutMs, clock }: { readonly timeoutMs: number; readonly clock: Clock },
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<ExportResult>();
  exporter.export(items, resolve);
  if (!(await hasSettledWithin(promise, timeoutMs + graceMs, clock))) {
    throw new Error("the collector did not answer in time");
  }
  const { code, error } = await promise;
  if (code !== 0) throw error ?? new Error("the collector did not take it");
}
