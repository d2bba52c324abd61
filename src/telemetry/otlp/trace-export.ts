import type { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import type { Clock } from "../../domain/clock.ts";
import { isSameValue } from "../../domain/json-object.ts";
import type { OtlpSettings } from "../../domain/settings.ts";
import { hasSettledWithin } from "../../domain/waiting/wait.ts";
import { isServerError, SpanBuilder, type TracedCall } from "./span-builder.ts";
import {
  exporterOptions,
  exportInTime,
  type OtlpIdentity,
  resourceAttributes,
} from "./otlp-identity.ts";

interface TraceExportOptions {
  readonly clock: Clock;
  readonly identity: OtlpIdentity;
  readonly on: TraceExportEvents;
}

interface TraceExportEvents {
  sent(calls: number): void;
  failed(calls: number, error: unknown): void;
  /** As many calls as are allowed were waiting already. */
  dropped(calls: number): void;
}

/** Calls in one request, so that building and encoding their spans takes about a millisecond. */
const callsAtOnce = 64;
/** How long calls wait for others to be sent with them. */
const gatherMs = 500;
/** Longest wait at the end of the process. */
const lastMs = 1_000;

/**
 * Sends the traces of ended calls, one request at a time. A call only leaves its facts in a bounded
 * queue; spans are made from them later, in short steps.
 */
export class TraceExport {
  readonly #options: TraceExportOptions;
  #settings: OtlpSettings | undefined;
  #sender: Promise<TraceSender> | undefined;
  #queue: TracedCall[] = [];
  #sending: Promise<void> | undefined;
  #endGathering = (): void => undefined;
  #isEnding = false;

  constructor(options: TraceExportOptions) {
    this.#options = options;
  }

  /** Follows the configuration. Calls that wait are sent where it says. */
  configure(otlp: OtlpSettings | undefined): void {
    const settings = otlp?.sendsTraces === true ? otlp : undefined;
    if (isSameValue(settings, this.#settings)) return;
    this.#close();
    this.#settings = settings;
    this.#sender = settings && openSender(settings, this.#options.identity);
    // The first request reports it.
    this.#sender?.catch(() => undefined);
    if (settings === undefined) this.#queue = [];
  }

  callEnded(call: TracedCall): void {
    const settings = this.#settings;
    if (settings === undefined || !isKept(call, settings)) return;
    if (this.#queue.length >= settings.queueLimit) return this.#options.on.dropped(1);
    this.#queue.push(call);
    if (this.#queue.length >= callsAtOnce) this.#endGathering();
    this.#sending ??= this.#sendAll();
  }

  /** Sends what waits, for at most a second. */
  async stop(): Promise<void> {
    this.#isEnding = true;
    this.#endGathering();
    await hasSettledWithin(Promise.resolve(this.#sending), lastMs, this.#options.clock);
    if (this.#queue.length > 0) this.#options.on.dropped(this.#queue.length);
    this.#queue = [];
    this.#close();
    this.#settings = undefined;
  }

  #close(): void {
    void this.#sender?.then(({ exporter }) => exporter.shutdown()).catch(() => undefined);
    this.#sender = undefined;
  }

  /** Never rejects. */
  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      if (this.#queue.length < callsAtOnce && !this.#isEnding) await this.#gather();
      await this.#send(this.#queue.splice(0, callsAtOnce));
    }
    this.#sending = undefined;
  }

  #gather(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.schedule(resolve, gatherMs);
      this.#endGathering = () => {
        cancel();
        resolve();
      };
    });
  }

  async #send(calls: readonly TracedCall[]): Promise<void> {
    const { clock, on } = this.#options;
    const timeoutMs = this.#settings?.timeoutMs;
    if (calls.length === 0 || this.#sender === undefined || timeoutMs === undefined) return;
    try {
      const { exporter, builder } = await this.#sender;
      const spans = calls.flatMap((call) => builder.spansOf(call));
      await exportInTime(exporter, spans, { timeoutMs, clock });
      on.sent(calls.length);
    } catch (error) {
      on.failed(calls.length, error);
    }
  }
}

function isKept({ record, timing }: TracedCall, { slowCallMs }: OtlpSettings): boolean {
  return timing.ids.isSampled || isServerError(record) || record.durationMs > slowCallMs;
}

interface TraceSender {
  readonly builder: SpanBuilder;
  readonly exporter: OTLPTraceExporter;
}

/** Loads the packages of OpenTelemetry, which takes 20 MB and 0.1 s, and opens an exporter. */
async function openSender(settings: OtlpSettings, identity: OtlpIdentity): Promise<TraceSender> {
  const [api, { resourceFromAttributes }, { OTLPTraceExporter: Exporter }] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/resources"),
    import("@opentelemetry/exporter-trace-otlp-proto"),
  ]);
  const resource = resourceFromAttributes(resourceAttributes(identity));
  return {
    builder: new SpanBuilder({ api, resource, version: identity.version }),
    exporter: new Exporter(exporterOptions(settings, "traces")),
  };
}
