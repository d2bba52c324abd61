import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { HandledRequest } from "../../domain/handled-request.ts";
import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import type { AffinityResult, AttemptNote } from "../../domain/usage/call-routing.ts";
import type { Clock } from "../../domain/clock.ts";
import type { CallTiming } from "../../domain/tracing.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { describeError, type Logger } from "../log/logger.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { TraceExport } from "../otlp/trace-export.ts";
import { type AccessLog, type CallOrigin, createAccessLog } from "./access-log.ts";

/** What all events are told with. */
export interface EventOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

interface EndedCallEvent {
  readonly origin?: CallOrigin | undefined;
  readonly attempts?: readonly AttemptNote[];
  readonly affinity?: AffinityResult | undefined;
  /** Undefined where no traces are sent. */
  readonly timing?: CallTiming | undefined;
  readonly error?: Pick<GatewayError, "explanation"> | undefined;
}

interface TaggedCallEvent {
  readonly tag: string;
  readonly record: UsageRecord;
  readonly parts: number;
}

/** A process that has begun to serve. */
interface StartedGateway {
  /** Addresses of its listeners; that of the admin listener is in the process that leads. */
  readonly data: string;
  readonly admin?: string;
  /** Path of its configuration; undefined for the demo. */
  readonly config: string | undefined;
}

interface TelemetryOptions {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly logsUpstreamMessages: boolean;
  readonly logsAccess: boolean;
  readonly traces: Pick<TraceExport, "callEnded">;
}

interface FailureAtTarget {
  readonly callId: string;
  readonly targetId: string;
  readonly failure: UpstreamFailure;
}

/**
 * One function per event that matters to operators; it updates the log and the metrics together.
 * Fields are picked by name, so that nothing else gets into a log.
 */
export class TelemetryEvents {
  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #counters: Metrics["counters"];
  readonly #traces: TelemetryOptions["traces"];
  readonly #logsUpstreamMessages: boolean;
  readonly #accessLog: AccessLog;
  #leadProblem: string | undefined;

  constructor({ logger, metrics, traces, logsUpstreamMessages, logsAccess }: TelemetryOptions) {
    this.#logger = logger;
    this.#metrics = metrics;
    this.#counters = metrics.counters;
    this.#traces = traces;
    this.#logsUpstreamMessages = logsUpstreamMessages;
    this.#accessLog = createAccessLog(logger, logsAccess);
  }

  requestHandled(request: HandledRequest): void {
    const { id, method, route, status, error, repeatedOf, access, audited } = request;
    this.#metrics.requestAnswered(route, status);
    if (repeatedOf !== undefined) {
      this.#counters.of("sluice_repeated_refusals_total", repeatedOf).value += 1;
    }
    const explanation = request.refusal?.explanation ?? error?.explanation;
    if (explanation !== undefined) {
      this.#counters.of("sluice_refusals_total", explanation.rule).value += 1;
    }
    if (audited !== undefined) {
      const { plan, refusal } = audited;
      this.#counters.of("sluice_audited_refusals_total", plan, refusal.explanation.rule).value += 1;
    }
    if (error?.row.code === "internal_error") {
      const cause = describeError(error.cause);
      this.#logger.log("error", "internal error", { id, method, route, cause });
    }
    if (access?.keyId !== undefined) this.#metrics.keyAnswered(access.keyId, status);
    this.#accessLog.request(request, explanation);
  }

  callEnded(
    record: UsageRecord,
    { origin, attempts, affinity, timing, error }: EndedCallEvent = {},
  ): void {
    this.#metrics.callEnded(record, attempts);
    if (affinity !== undefined) this.#metrics.callRouted(record, affinity);
    this.#accessLog.call(record, origin);
    if (timing === undefined || origin === undefined) return;
    const { method, route, trace } = origin;
    const rule = error?.explanation?.rule;
    this.#traces.callEnded({ record, timing, method, route, trace, rule });
  }

  attemptFailed(callId: string, targetId: string, failure: UpstreamFailure): void {
    const { kind } = failure.details;
    // Nothing was sent: the target only turned out not to support the request.
    if (kind !== "unsupported") {
      const upstream = upstreamOf(targetId);
      this.#counters.of("sluice_attempt_failures_total", upstream, kind).value += 1;
    }
    this.#logFailure("attempt failed", { callId, targetId, failure });
  }

  /** An input could not be counted, so its estimate decides; the call itself has not failed. */
  countFailed(callId: string, targetId: string, failure: UpstreamFailure): void {
    this.#logFailure("an input could not be counted", { callId, targetId, failure });
  }

  #logFailure(event: string, { callId, targetId, failure }: FailureAtTarget): void {
    const { message, kind, status, code, hint, requestId, param } = failure.details;
    // Upstreams quote what they refuse, so their messages may contain a prompt.
    const words = this.#logsUpstreamMessages ? message : undefined;
    const about = { kind, status, code, param, hint, requestId, words };
    this.#logger.log(attemptLogLevel(kind), event, { id: callId, target: targetId, ...about });
  }

  /** Events of a streamed answer that could not be parsed. Their content is never logged. */
  malformedEvents(stream: { id: string; upstream: string; target: string; count: number }): void {
    const { id, upstream, target, count } = stream;
    this.#counters.of("sluice_malformed_events_total", upstream).value += count;
    const message = "an upstream's stream had malformed events; their content is lost";
    this.#logger.log("warn", message, { id, upstream, target, count });
  }

  /** A problem of an upstream outside any call. `what` is the gateway's own text. */
  upstreamTrouble(upstream: string, what: string): void {
    this.#counters.of("sluice_upstream_troubles_total", upstream).value += 1;
    this.#logger.log("warn", "upstream trouble", { upstream, what });
  }

  /** A tag that the caller set in a header, with the usage of the call. */
  callTagged({ tag, record, parts }: TaggedCallEvent): void {
    const { id, application, keyId, model, outcome, inputTokens, outputTokens } = record;
    const about = { id, tag, application, keyId, model, outcome };
    this.#logger.log("info", "call tagged", { ...about, inputTokens, outputTokens, parts });
  }

  endUsersOverflowed(): void {
    this.#counters.of("sluice_end_users_beyond_total").value += 1;
  }

  labelDropped(label: "end_user" | "tag"): void {
    this.#counters.of("sluice_labels_dropped_total", label).value += 1;
  }

  /** A hook failed after the call was over. */
  hookFailed(callId: string, hook: string, error: unknown): void {
    const cause = describeError(error);
    this.#logger.log("error", "a hook failed at the end of a call", { id: callId, hook, cause });
  }

  settleFailed(callId: string, error: unknown): void {
    const cause = describeError(error);
    this.#logger.log("error", "a reservation could not be settled", { id: callId, cause });
  }

  configAccepted(name: string): void {
    this.#counters.of("sluice_config_reloads_total", "accepted").value += 1;
    this.#logger.log("info", "configuration reloaded", { name });
  }

  configRefused(problems: string): void {
    this.#counters.of("sluice_config_reloads_total", "refused").value += 1;
    this.#logger.log("error", "configuration rejected; the running one stays in use", { problems });
  }

  configNotice(notice: string): void {
    this.#logger.log("warn", "configuration", { notice });
  }

  /** A sign-in to the control plane failed. */
  signInRefused(refusal: { id: string; address: string; how: string; reason: string }): void {
    this.#logger.log("warn", "a sign-in was refused", refusal);
  }

  localAccessFailed(error: unknown): void {
    const message = "the file for the command line on this machine could not be written";
    this.#logger.log("warn", message, { cause: describeError(error) });
  }

  started({ config = "the built-in demo", ...addresses }: StartedGateway): void {
    this.#logger.log("info", "listening", { ...addresses, config });
  }

  /** The control thread is gone: keys and configuration stay as they are. */
  controlLost(reason: string): void {
    const message =
      "the control thread has ended: calls continue with the last keys and configuration";
    this.#logger.log("error", message, { reason });
  }

  controlBack(): void {
    this.#logger.log("info", "the control thread is back");
  }

  controlGivenUp(deaths: number): void {
    this.#logger.log("error", "the control thread ends again and again: this process ends", {
      deaths,
    });
  }

  /** A start after a crash has only the file itself. */
  lastGoodFailed(error: unknown): void {
    const reason = messageOf(error);
    this.#logger.log("warn", "the last good configuration cannot be kept", { reason });
  }

  /** Processes of one machine cannot ask each other. */
  siblingsFailed(error: unknown): void {
    const reason = messageOf(error);
    this.#logger.log("warn", "metrics, status and explain know this process alone", { reason });
  }

  /** The process should lead its machine and cannot; it tries again. */
  leadFailed(error: unknown): void {
    const reason = messageOf(error);
    if (reason === this.#leadProblem) return;
    this.#leadProblem = reason;
    this.#logger.log("error", "the admin listener and the jobs cannot start here", { reason });
  }

  draining(openRequests: number): void {
    this.#logger.log("info", "shutting down: open requests may finish", { openRequests });
  }

  stopped(): void {
    this.#logger.log("info", "stopped");
  }

  /** More units are sold than the pool holds, for example after a change of configuration. */
  poolOversold(pool: string, soldUnits: number, sellableUnits: number): void {
    const message = "a pool holds fewer units than are sold, so guarantees may not be kept";
    this.#logger.log("warn", message, { pool, soldUnits, sellableUnits });
  }

  /** The plan of a key is not configured: its calls are refused until it is. */
  planMissing(keyId: string, plan: string): void {
    this.#logger.log("error", "a key's plan is not configured", { keyId, plan });
  }

  unhandled(id: string, error: unknown): void {
    this.#logger.log("error", "unhandled failure", { id, cause: describeError(error) });
  }
}

/** Mistakes of the operator are errors; those of providers and callers have lower levels. */
function attemptLogLevel(kind: UpstreamFailureKind): "debug" | "warn" | "error" {
  switch (kind) {
    case "bad-credential":
    case "account-blocked":
    case "unknown-model":
      return "error";
    case "context-overflow":
    case "invalid-request":
    case "content-refused":
    case "unsupported":
      return "debug";
    default:
      return "warn";
  }
}

/** The upstream of a target, whose id is `upstream/model`. */
export function upstreamOf(target: string): string {
  return target.slice(0, target.indexOf("/"));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
