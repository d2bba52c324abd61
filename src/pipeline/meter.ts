import type { Clock } from "../domain/clock.ts";
import type { GatewayError } from "../domain/gateway-error.ts";
import type { Model, Target } from "../domain/model.ts";
import type { CallOutcome, TokenUsage, UsageRecord, UsageSource } from "../domain/usage.ts";
import type { LimitStore } from "../storage/store.ts";
import type { Admission } from "./admit.ts";
import type { Call } from "./call.ts";
import type { InputSize, OutputExpectation, TokenEstimate, TokenEstimator } from "./estimate.ts";

/** Takes the row of a finished call. Must not throw and must not wait. */
export type RecordUsage = (record: UsageRecord) => void;

export interface MeterServices {
  readonly clock: Clock;
  readonly limits: LimitStore;
  readonly estimator: TokenEstimator;
  readonly recordUsage: RecordUsage;
  /** A reservation that cannot be settled ages out by itself, but somebody should know. */
  readonly onSettleFailed: (callId: string, error: unknown) => void;
}

export interface MeterSubject {
  readonly call: Call;
  readonly model: Model;
  readonly size: InputSize;
  readonly output: OutputExpectation;
  readonly estimate: TokenEstimate;
  readonly isStreamed: boolean;
}

/**
 * Follows one call to its end and accounts for it exactly once, however many of finish, failure
 * and departure are reported: the first one counts.
 */
export class Meter {
  readonly #services: MeterServices;
  readonly #subject: MeterSubject;
  #admission: Admission | undefined;
  #target: Target | undefined;
  #attempts = 0;
  #firstEventAt: number | undefined;
  #usage: TokenUsage | undefined;
  #deliveredPieces = 0;
  #deliveredCharacters = 0;
  #isClosed = false;

  constructor(subject: MeterSubject, services: MeterServices) {
    this.#subject = subject;
    this.#services = services;
  }

  admitted(admission: Admission): void {
    this.#admission = admission;
  }

  attempting(target: Target): void {
    this.#target = target;
    this.#attempts += 1;
  }

  answering(): void {
    this.#firstEventAt ??= this.#services.clock.monotonic();
  }

  /** Output that goes to the caller: what is billed when the upstream never says its count. */
  delivering(characters: number): void {
    this.#deliveredPieces += 1;
    this.#deliveredCharacters += characters;
  }

  /** The latest report counts; undefined when the upstream did not say. */
  reported(usage: TokenUsage | undefined): void {
    this.#usage = usage;
  }

  /** Counts of the answer as they will be recorded. */
  get usage(): TokenUsage {
    return this.#usage ?? this.#estimatedUsage();
  }

  completed(): void {
    this.#close("completed", 200, undefined);
    const { estimator, clock } = this.#services;
    const { call, model, size, output } = this.#subject;
    const subject = { keyId: call.caller.key.id, model, nowMs: clock.monotonic() };
    const usage = this.#usage;
    if (usage !== undefined) estimator.learn(subject, { size, output, usage });
  }

  failed(error: GatewayError): void {
    const outcome = error.row.status === 499 ? "abandoned" : "failed";
    this.#close(outcome, error.status, error.code ?? undefined);
  }

  abandoned(): void {
    this.#close("abandoned", 499, "caller_left");
  }

  #close(outcome: CallOutcome, status: number, code: string | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { usage, source } = this.#finalUsage(outcome);
    if (this.#admission !== undefined) this.#settle(usage);
    this.#services.recordUsage(this.#record({ outcome, status, code, usage, source }));
  }

  #finalUsage(outcome: CallOutcome): { usage: TokenUsage; source: UsageSource } {
    if (this.#usage !== undefined) return { usage: this.#usage, source: "upstream" };
    const hasWorked = this.#deliveredPieces > 0 || outcome === "completed";
    // A caller that leaves while the upstream reads its prompt has used the prompt.
    const isWorking = outcome === "abandoned" && this.#attempts > 0;
    const usage = hasWorked || isWorking ? this.#estimatedUsage() : noUsage;
    return { usage, source: "estimated" };
  }

  #estimatedUsage(): TokenUsage {
    // Most upstreams send a token a piece; where they send more, four characters make a token.
    const byLength = Math.ceil(this.#deliveredCharacters / 4);
    return {
      inputTokens: this.#subject.estimate.likelyInputTokens,
      outputTokens: Math.max(this.#deliveredPieces, byLength),
      cachedInputTokens: 0,
      reasoningTokens: 0,
    };
  }

  #settle(usage: TokenUsage): void {
    const { limits, onSettleFailed } = this.#services;
    const callId = this.#subject.call.id;
    const settling = limits.settle(callId, usage.inputTokens + usage.outputTokens);
    settling?.catch((error: unknown) => onSettleFailed(callId, error));
  }

  #record(end: CallEnd): UsageRecord {
    const { call, model, isStreamed } = this.#subject;
    const { key } = call.caller;
    const now = this.#services.clock.monotonic();
    const durationMs = now - call.receivedAt;
    const firstEventAt = this.#firstEventAt;
    return {
      id: call.id,
      startedAt: Math.round(this.#services.clock.now() - durationMs),
      environment: call.environment.name,
      application: key.application,
      keyId: key.id,
      model: model.alias,
      target: this.#target?.id,
      capacityClass: this.#admission?.capacityClass ?? "on-demand",
      inputTokens: end.usage.inputTokens,
      outputTokens: end.usage.outputTokens,
      cachedInputTokens: end.usage.cachedInputTokens,
      usageSource: end.source,
      outcome: end.outcome,
      status: end.status,
      code: end.code,
      isStreamed,
      attempts: this.#attempts,
      firstEventMs: firstEventAt === undefined ? undefined : firstEventAt - call.receivedAt,
      durationMs,
    };
  }
}

interface CallEnd {
  readonly outcome: CallOutcome;
  readonly status: number;
  readonly code: string | undefined;
  readonly usage: TokenUsage;
  readonly source: UsageSource;
}

const noUsage: TokenUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
};
