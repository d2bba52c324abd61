import type { Clock } from "../../domain/clock.ts";
import { isSameValue } from "../../domain/json-object.ts";
import type { OtlpSettings } from "../../domain/settings.ts";
import { hasSettledWithin, nextTurn } from "../../domain/waiting/wait.ts";
import { isServerError, type Span, SpanBuilder, type TracedCall } from "./span-builder.ts";
import { exporterOptions, type OtlpIdentity, resourceAttributes } from "./otlp-identity.ts";

interface TraceExportOptions {
  readonly clock: Clock;
  readonly open: (settings: OtlpSettings) => Promise<TraceSender>;
  readonly on: TraceExportEvents;
}

interface TraceExportEvents {
  sent(calls: number): void;
  failed(calls: number, error: unknown): void;
  /** As many calls as are allowed were waiting already. */
  dropped(calls: number): void;
}

/** Spans in one request, so that building and encoding them takes about a millisecond. */
const spansAtOnce = 160;
const mostRequests = 8;
/** How long calls wait for others to be sent with them. */
const gatherMs = 500;
/** How much longer than its timeout a request of the exporter may take. */
const graceMs = 500;
/** Longest wait at the end of the process. */
const lastMs = 1_000;

/**
 * Sends the traces of ended calls. A call only leaves its facts in a bounded queue; spans are made
 * from them later, in short steps.
 */
export class TraceExport {
  readonly #options: TraceExportOptions;
  readonly #requests = new Set<Promise<void>>();
  #settings: OtlpSettings | undefined;
  #sender: Promise<TraceSender> | undefined;
  #queue: TracedCall[] = [];
  #cancelTimer: (() => void) | undefined;

  constructor(options: TraceExportOptions) {
    this.#options = options;
  }

  /** Follows the configuration. Calls that wait are sent where it says. */
  configure(otlp: OtlpSettings | undefined): void {
    const settings = otlp?.sendsTraces === true ? otlp : undefined;
    if (isSameValue(settings, this.#settings)) return;
    this.#close();
    this.#settings = settings;
    this.#sender = settings && this.#options.open(settings);
    // The first request reports it.
    this.#sender?.catch(() => undefined);
    if (settings === undefined) this.#queue = [];
  }

  callEnded(call: TracedCall): void {
    const settings = this.#settings;
    if (settings === undefined || !isKept(call, settings)) return;
    if (this.#queue.length >= settings.queueLimit) return this.#options.on.dropped(1);
    this.#queue.push(call);
    this.#schedule(gatherMs);
  }

  /** Sends what waits, for at most a second. */
  async stop(): Promise<void> {
    await hasSettledWithin(this.#sendAll(), lastMs, this.#options.clock);
    this.#cancelTimer?.();
    if (this.#queue.length > 0) this.#options.on.dropped(this.#queue.length);
    this.#queue = [];
    this.#close();
    this.#settings = undefined;
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0 || this.#requests.size > 0) {
      this.#request();
      // Requests that continue must not be held up by the making of further ones.
      await (this.#hasRoom ? nextTurn() : Promise.race(this.#requests));
    }
  }

  get #hasRoom(): boolean {
    return this.#queue.length > 0 && this.#requests.size < mostRequests;
  }

  #close(): void {
    void this.#sender?.then((sender) => sender.close()).catch(() => undefined);
    this.#sender = undefined;
  }

  #schedule(delayMs: number): void {
    this.#cancelTimer ??= this.#options.clock.schedule(() => {
      this.#cancelTimer = undefined;
      this.#request();
      this.#continue();
    }, delayMs);
  }

  #continue(): void {
    if (this.#hasRoom) this.#schedule(this.#queue.length < spansAtOnce ? gatherMs : 0);
  }

  #request(): void {
    const sender = this.#sender;
    if (sender === undefined || !this.#hasRoom) return;
    const request = this.#send(sender).finally(() => {
      this.#requests.delete(request);
      this.#continue();
    });
    this.#requests.add(request);
  }

  /** Never rejects. */
  async #send(opening: Promise<TraceSender>): Promise<void> {
    const { on } = this.#options;
    let calls = 0;
    try {
      const sender = await opening;
      const spans: Span[] = [];
      while (spans.length < spansAtOnce) {
        const call = this.#queue[calls];
        if (call === undefined) break;
        calls += 1;
        spans.push(...sender.builder.spansOf(call));
      }
      this.#queue.splice(0, calls);
      if (calls === 0) return;
      await this.#inTime(sender.send(spans));
      on.sent(calls);
    } catch (error) {
      // Without an exporter, nothing that waits can be sent.
      if (calls === 0) calls = this.#queue.splice(0).length;
      on.failed(calls, error);
    }
  }

  /** The exporter's own timeout does not cover the making of a connection. */
  async #inTime(sending: Promise<void>): Promise<void> {
    const timeoutMs = (this.#settings?.timeoutMs ?? 0) + graceMs;
    const isInTime = await hasSettledWithin(sending, timeoutMs, this.#options.clock);
    if (!isInTime) throw new Error("the collector did not answer in time");
    return sending;
  }
}

function isKept({ record, timing }: TracedCall, { slowCallMs }: OtlpSettings): boolean {
  return timing.ids.isSampled || isServerError(record) || record.durationMs > slowCallMs;
}

/** Sends spans to a collector. */
interface TraceSender {
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
