import type * as Api from "@opentelemetry/api";
import type { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import type { RequestTrace } from "../../domain/request-trace.ts";
import {
  type AttemptTiming,
  type CallTiming,
  spanIdOf,
  spanNumbers,
} from "../../domain/tracing.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { names, operations, ownNames, schemaUrl } from "./conventions.ts";

export type Span = Parameters<OTLPTraceExporter["export"]>[0][number];
type Attributes = Record<string, string | number | boolean | undefined>;

/** An ended call, for its trace. */
export interface TracedCall {
  readonly record: UsageRecord;
  readonly timing: CallTiming;
  readonly method: string;
  readonly route: string;
  readonly trace: RequestTrace | undefined;
  /** The rule by which the gateway refused it. */
  readonly rule: string | undefined;
}

export interface SpanSource {
  readonly api: Pick<typeof Api, "SpanKind" | "SpanStatusCode" | "createTraceState">;
  readonly resource: Span["resource"];
  readonly version: string;
}

/** A span of a call before it has its trace; times are milliseconds since the call's arrival. */
interface Part {
  readonly number: number;
  readonly name: string;
  readonly kind: Api.SpanKind;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly hasFailed?: boolean;
  readonly firstEventMs?: number | undefined;
}

/** Makes the spans of ended calls. */
export class SpanBuilder {
  readonly #source: SpanSource;
  readonly #scope: Span["instrumentationScope"];

  constructor(source: SpanSource) {
    this.#source = source;
    this.#scope = { name: "sluice", schemaUrl, version: source.version };
  }

  spansOf(call: TracedCall): readonly Span[] {
    const { timing } = call;
    const parts = [this.#callPart(call), this.#admissionPart(call)];
    if (timing.queuedMs !== undefined) parts.push(this.#queuePart(call, timing.queuedMs));
    for (const [index, attempt] of timing.attempts.entries()) {
      parts.push(this.#attemptPart(call, attempt, index));
    }
    return parts.map((part) => this.#span(call, part));
  }

  #callPart({ record, timing, method, route, trace, rule }: TracedCall): Part {
    return {
      number: spanNumbers.call,
      name: `${method} ${route}`,
      kind: this.#source.api.SpanKind.SERVER,
      startMs: 0,
      endMs: record.durationMs,
      hasFailed: isServerError(record),
      attributes: {
        [names.httpMethod]: method,
        [names.httpRoute]: route,
        [names.urlPath]: route,
        [names.urlScheme]: "http",
        [names.httpStatus]: record.status,
        [names.errorType]: isServerError(record) ? errorType(record) : undefined,
        ...modelAttributes(record, timing, record.model),
        ...usageAttributes(record),
        [ownNames.requestId]: record.id,
        [ownNames.callerRequestId]: trace?.callerRequestId,
        [ownNames.environment]: record.environment,
        [ownNames.application]: record.application,
        [ownNames.keyId]: record.keyId,
        [ownNames.dialect]: record.dialect,
        [ownNames.capacityClass]: record.capacityClass,
        [ownNames.outcome]: record.outcome,
        [ownNames.usageSource]: record.usageSource,
        [ownNames.attempts]: record.attempts,
        [ownNames.rule]: rule,
      },
    };
  }

  #admissionPart({ record, timing, rule }: TracedCall): Part {
    return {
      number: spanNumbers.admission,
      name: "admission",
      kind: this.#source.api.SpanKind.INTERNAL,
      startMs: timing.parsedMs,
      endMs: timing.admittedMs ?? record.durationMs,
      attributes: {
        [ownNames.capacityClass]:
          timing.admittedMs === undefined ? undefined : record.capacityClass,
        [ownNames.rule]: timing.admittedMs === undefined ? rule : undefined,
      },
    };
  }

  #queuePart({ record, timing }: TracedCall, startMs: number): Part {
    const next = timing.attempts.find((attempt) => attempt.startMs >= startMs);
    return {
      number: spanNumbers.queue,
      name: "queue",
      kind: this.#source.api.SpanKind.INTERNAL,
      startMs,
      endMs: next?.startMs ?? record.durationMs,
      attributes: {},
    };
  }

  #attemptPart({ record, timing }: TracedCall, attempt: AttemptTiming, index: number): Part {
    const { outcome, upstreamModel } = attempt;
    const hasFailed = outcome !== "answered" && outcome !== "given-up";
    const isServing = attempt.target === record.target && index === lastAt(timing, attempt.target);
    const firstEventMs = record.isStreamed ? attempt.firstEventMs : undefined;
    return {
      number: spanNumbers.attempts + index,
      name: `${operations[timing.kind]} ${upstreamModel}`,
      kind: this.#source.api.SpanKind.CLIENT,
      startMs: attempt.startMs,
      endMs: attempt.startMs + attempt.durationMs,
      hasFailed,
      firstEventMs,
      attributes: {
        ...modelAttributes(record, timing, upstreamModel),
        [names.provider]: attempt.provider,
        ...serverAttributes(attempt.url),
        [names.errorType]: hasFailed ? outcome : undefined,
        [names.httpStatus]: attempt.status,
        [names.firstChunkSeconds]: secondsBetween(attempt.startMs, firstEventMs),
        ...(isServing && outcome === "answered" && usageAttributes(record)),
        [ownNames.target]: attempt.target,
        [ownNames.outcome]: outcome,
        [ownNames.decision]: attempt.decision,
      },
    };
  }

  #span({ record, timing }: TracedCall, part: Part): Span {
    const { api, resource } = this.#source;
    const { number, name, kind, hasFailed, firstEventMs } = part;
    const { ids, tracestate } = timing;
    const startTime = timeAt(record, part.startMs);
    const endTime = timeAt(record, Math.max(part.startMs, part.endMs));
    const context = {
      traceId: ids.traceId,
      traceFlags: ids.isSampled ? 1 : 0,
      ...(tracestate !== undefined && { traceState: api.createTraceState(tracestate) }),
    };
    const own = { ...context, spanId: spanIdOf(record.id, number) };
    const isRoot = number === spanNumbers.call;
    const parent = isRoot ? ids.parentSpanId : spanIdOf(record.id, spanNumbers.call);
    return {
      name,
      kind,
      spanContext: () => own,
      ...(parent !== undefined && {
        parentSpanContext: { ...context, spanId: parent, isRemote: isRoot },
      }),
      startTime,
      endTime,
      duration: durationBetween(startTime, endTime),
      status: { code: hasFailed === true ? api.SpanStatusCode.ERROR : api.SpanStatusCode.UNSET },
      attributes: withoutUndefined(part.attributes),
      links: [],
      events:
        firstEventMs === undefined
          ? []
          : [{ name: "first event", time: timeAt(record, firstEventMs) }],
      ended: true,
      resource,
      instrumentationScope: this.#scope,
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    };
  }
}

/** Whether a call failed by a fault of the gateway or of its upstreams. */
export function isServerError({ status, outcome }: UsageRecord): boolean {
  return outcome === "failed" && status >= 500;
}

function errorType({ code, status }: UsageRecord): string {
  return code ?? String(status);
}

function modelAttributes(record: UsageRecord, { kind }: CallTiming, model: string): Attributes {
  return {
    [names.operation]: operations[kind],
    [names.requestModel]: model,
    [names.isStreamed]: record.isStreamed,
  };
}

function usageAttributes(record: UsageRecord): Attributes {
  return {
    [names.inputTokens]: record.inputTokens,
    [names.outputTokens]: record.outputTokens,
    [names.cacheReadTokens]: record.cachedInputTokens || undefined,
    [names.cacheWriteTokens]: record.cacheWriteTokens,
  };
}

/** The query of the address may hold a credential, so only host and port are used. */
function serverAttributes(url: string | undefined): Attributes {
  const parsed = url === undefined ? null : URL.parse(url);
  if (parsed === null) return {};
  const { hostname, port, protocol } = parsed;
  const standardPort = protocol === "https:" ? 443 : 80;
  return {
    [names.serverAddress]: hostname.replace(/^\[(.*)\]$/, "$1"),
    [names.serverPort]: port === "" ? standardPort : Number(port),
  };
}

/** The encoder would send an undefined value as an empty one. */
function withoutUndefined(attributes: Attributes): Span["attributes"] {
  const known: Span["attributes"] = {};
  for (const name in attributes) {
    const value = attributes[name];
    if (value !== undefined) known[name] = value;
  }
  return known;
}

function lastAt({ attempts }: CallTiming, target: string): number {
  return attempts.findLastIndex((attempt) => attempt.target === target);
}

function secondsBetween(startMs: number, endMs: number | undefined): number | undefined {
  return endMs === undefined ? undefined : (endMs - startMs) / 1000;
}

/** Seconds and nanoseconds since the epoch. */
function timeAt({ startedAt }: UsageRecord, offsetMs: number): [number, number] {
  const milliseconds = startedAt + Math.floor(offsetMs);
  const seconds = Math.floor(milliseconds / 1000);
  const rest = milliseconds - seconds * 1000 + (offsetMs - Math.floor(offsetMs));
  return [seconds, Math.min(999_999_999, Math.round(rest * 1e6))];
}

function durationBetween(start: [number, number], end: [number, number]): [number, number] {
  const nanoseconds = end[1] - start[1];
  return nanoseconds < 0
    ? [end[0] - start[0] - 1, nanoseconds + 1e9]
    : [end[0] - start[0], nanoseconds];
}
