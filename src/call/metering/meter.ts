import type { Clock } from "../../domain/clock.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { exhaustedBudget } from "../../domain/errors/refusal.ts";
import type { UpstreamFailureDetails } from "../../domain/errors/upstream-failure.ts";
import type { Model } from "../../domain/model.ts";
import { askedTier as tierAsked } from "../../domain/money/service-tier.ts";
import type { PriceBook } from "../../domain/money/price.ts";
import type {
  CallDialect,
  CallLedger,
  CallOutcome,
  OpenedCall,
  RecordFailure,
  TokenUsage,
  UsageRecord,
} from "../../domain/usage/usage.ts";
import { dearestTokens, planTokens } from "../../domain/limits/token-weights.ts";
import type { LimitStore } from "../../store/limits/limit-store.ts";
import type { Admission } from "../../admission/admit.ts";
import type { Call } from "../../snapshot/call.ts";
import type {
  InputSize,
  OutputExpectation,
  TokenEstimate,
  TokenEstimator,
} from "../../admission/estimate/estimate.ts";
import type { CallLabels } from "../labels.ts";
import { type AboutCall, attemptEndOf, type CallEnd, CallPath, timingOf } from "../call-path.ts";
import { costOfCall, type CostTerms, dearestCost } from "./call-cost.ts";
import { CallUsage, type CountedUsage } from "./call-usage.ts";
import { generatedWithin, type Unanswered, usageOfFailed } from "./failed-usage.ts";
import { boundedUsage, boundsOf } from "./bounded-usage.ts";

export interface MeterServices {
  readonly clock: Clock;
  readonly limits: LimitStore;
  readonly estimator: TokenEstimator;
  readonly ledger: CallLedger;
  readonly prices: PriceBook;
  /**
   * For metrics and log: the row of the ledger, the origin of the call and its failure. Must not
   * throw.
   */
  readonly onCallEnded: (record: UsageRecord, about: AboutCall) => void;
  /** Called when a reservation cannot be settled; it expires by itself. */
  readonly onSettleFailed: (callId: string, error: unknown) => void;
}

export interface MeterSubject {
  readonly call: Call;
  readonly model: Model;
  readonly size: InputSize;
  readonly output: OutputExpectation;
  readonly estimate: TokenEstimate;
  /** How many inputs, each of at most a context window, upstreams may read. */
  readonly inputs: number;
  readonly images?: number | undefined;
  readonly isStreamed: boolean;
  readonly dialect: CallDialect;
  /** The service tier that the caller asked for. */
  readonly serviceTier?: string | undefined;
  readonly labels: Pick<CallLabels, "endUser" | "tags">;
}

/** Tokens that a stream may deliver beyond its reservation before the limits are updated. */
const overrunTokens = 256;
/** Tokens and time of a stream between two checkpoints in the ledger. */
const checkpointTokens = 1_000;
const checkpointIntervalMs = 5_000;

/**
 * Follows one call to its end and accounts for it exactly once: the first of completion, failure
 * and departure counts.
 */
export class Meter {
  readonly #services: MeterServices;
  readonly #subject: MeterSubject;
  /** Milliseconds since the epoch. */
  readonly arrivedAt: number;
  readonly #parsedAt: number;
  #admittedAt: number | undefined;
  #admission: Admission | undefined;
  /** The input that admission reserved. */
  #reservedInput: number;
  /** Filled by the attempt loop. */
  readonly path = new CallPath();
  #firstEventAt: number | undefined;
  readonly #tokens: CallUsage;
  #checkpointTokens = 0;
  #checkpointAt = 0;
  /** Tokens that the limits have counted, without weights. */
  #countedTokens = 0;
  #isOpen = false;
  #isClosed = false;
  /** The recorded usage of the answer. */
  #final: CountedUsage | undefined;
  #costNano: number | undefined;
  #recorded: Promise<RecordFailure> | undefined;

  constructor(subject: MeterSubject, services: MeterServices) {
    this.#subject = subject;
    this.#services = services;
    this.#reservedInput = subject.estimate.inputTokens;
    this.#tokens = new CallUsage(subject.model.kind, this.#reservedInput);
    const { clock } = services;
    this.#parsedAt = clock.monotonic();
    this.arrivedAt = Math.round(clock.now() - (this.#parsedAt - subject.call.receivedAt));
  }

  /** The call may run once this resolves, unless the ledger refuses it. */
  admitted(admission: Admission): Promise<RecordFailure> {
    this.#admission = admission;
    this.#reservedInput = this.#tokens.inputTokens;
    this.#countedTokens = admission.reservedTokens;
    this.#isOpen = true;
    this.#checkpointAt = this.#admittedAt = this.#services.clock.monotonic();
    return this.#services.ledger.open(this.#openedCall(admission));
  }

  /** Resolves when the end of the call is in the ledger; the caller gets its end only then. */
  get recorded(): Promise<RecordFailure> | undefined {
    return this.#recorded;
  }

  answering(): void {
    this.#firstEventAt ??= this.#services.clock.monotonic();
  }

  /** Output sent to the caller, billed if the upstream never reports usage. */
  delivering(characters: number): void {
    this.#tokens.delivering(characters);
    if (!this.#subject.isStreamed || !this.#isOpen) return;
    const tokens = this.#tokens.deliveredTokens;
    this.#keepCheckpoint(tokens);
    this.#countOverrun(tokens);
  }

  /** An upstream counted the input before admission. */
  inputCounted(tokens: number): void {
    this.#tokens.inputCounted(tokens);
  }

  /** The upstream's usage of the whole answer; undefined if it did not report any. */
  reported(usage: TokenUsage | undefined): void {
    this.#tokens.reported(this.#bounded(usage));
  }

  /** Usage of a running answer: the whole input, and the output so far. */
  reportedSoFar(usage: TokenUsage): void {
    this.#tokens.reportedSoFar(this.#bounded(usage) ?? usage);
  }

  /** Usage of the finished choices or batches of the call. */
  reportedPart(usage: TokenUsage | undefined): void {
    this.#tokens.reportedPart(this.#bounded(usage));
  }

  /**
   * An attempt failed. What its answer reports is used, although nobody gets it. Without a report,
   * an answer that the gateway rejects or cuts costs what was reserved for it, and one that the
   * upstream broke off what it can have generated by then. Returns the tokens.
   */
  attemptFailed(failure: UpstreamFailureDetails, unanswered: Unanswered): number {
    const { inputTokens } = this.#tokens;
    const most = { inputTokens, outputTokens: this.#reservedOutput };
    const reported = this.#bounded(failure.usage);
    const counted = usageOfFailed({ ...failure, usage: reported }, unanswered, most);
    if (counted === undefined) return 0;
    this.#tokens.attemptFailed(counted);
    return counted.usage.inputTokens + counted.usage.outputTokens;
  }

  /** Billed input tokens as known so far. */
  get inputTokens(): number {
    return this.#tokens.inputTokens;
  }

  /** Usage of the answer, as the caller sees it. */
  get usage(): TokenUsage {
    return (this.#final ?? this.#tokens.ofAnswer).usage;
  }

  /** Nano-USD, once the call has ended; undefined: something that was used has no price. */
  get costNano(): number | undefined {
    return this.#costNano;
  }

  completed(): void {
    if (this.#isClosed) return;
    const { estimator, clock } = this.#services;
    const { call, size, output } = this.#subject;
    const model = this.path.serving?.candidate.model ?? this.#subject.model;
    const { id: keyId, accountId } = call.caller.key;
    const subject = { accountId, keyId, model, nowMs: clock.monotonic() };
    const usage = this.#tokens.whole;
    this.#close({ outcome: "completed", status: 200 });
    if (usage !== undefined) {
      estimator.learn(subject, { size, output, outputCap: this.#admission?.outputCap, usage });
    }
  }

  failed(error: GatewayError): void {
    const outcome = error.row.status === 499 ? "abandoned" : "failed";
    this.#close({ outcome, status: error.status, code: error.code ?? undefined, error });
  }

  abandoned(): void {
    this.#close({ outcome: "abandoned", status: 499, code: "caller_left" });
  }

  #close(end: CallEnd): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { outcome, error } = end;
    this.#final = this.#finalUsage(outcome, end.status);
    const { inputTokens, outputTokens } = this.#final.usage;
    const all = this.#tokens.withFailed(this.#final);
    this.path.serving?.conclude(attemptEndOf(outcome, error));
    const record = this.#record(end, all);
    if (this.#admission !== undefined) this.#settle(record);
    this.#costNano = record.costNano;
    this.#recorded = this.#services.ledger.close(record);
    this.path.serving?.release(inputTokens + outputTokens);
    const { origin, hooks } = this.#subject.call;
    const attempts = record.routing?.attempts ?? this.path.notes;
    const times = { parsedAt: this.#parsedAt, admittedAt: this.#admittedAt };
    const timing = timingOf(this.#subject, this.path, times);
    const { affinity } = this.path;
    this.#services.onCallEnded(record, { origin, error, attempts, affinity, timing });
    hooks?.callClosed(record);
  }

  #finalUsage(outcome: CallOutcome, status: number): CountedUsage {
    const tokens = this.#tokens;
    if (tokens.whole !== undefined || outcome === "completed") return tokens.ofAnswer;
    // A caller that leaves while the upstream reads its prompt has used the prompt.
    const isWorking = this.path.attempts > 0 && this.#isEndedByCaller(outcome, status);
    if (tokens.hasDelivered) return tokens.ofDelivery;
    return isWorking ? this.#withGenerated(tokens.ofDelivery) : tokens.ofFailure;
  }

  /** The last attempt was generating when the caller ended it: what it did by then was used. */
  #withGenerated(counted: CountedUsage): CountedUsage {
    const { usage } = counted;
    const generated = generatedWithin(this.path.last?.ageMs ?? 0, this.#reservedOutput);
    if (generated <= usage.outputTokens) return counted;
    return { usage: { ...usage, outputTokens: generated }, source: "estimated" };
  }

  get #reservedOutput(): number {
    const { reservedTokens = 0 } = this.#admission ?? {};
    return Math.max(0, reservedTokens - this.#reservedInput);
  }

  /** What an upstream reports, limited to what the call can have used. */
  #bounded(usage: TokenUsage | undefined): TokenUsage | undefined {
    if (usage === undefined) return undefined;
    const model = this.path.last?.candidate.model ?? this.#subject.model;
    const { deliveredCharacters } = this.#tokens;
    return boundedUsage(usage, boundsOf(model, this.#subject, deliveredCharacters));
  }

  /** The caller left, its own deadline passed, or its key ended. */
  #isEndedByCaller(outcome: CallOutcome, status: number): boolean {
    return outcome === "abandoned" || (status < 500 && this.#subject.call.signal.aborted);
  }

  /** Extends the reservation of a stream that exceeds it. */
  #countOverrun(outputTokens: number): void {
    const used = this.#tokens.inputTokens + outputTokens;
    if (used < this.#countedTokens + overrunTokens) return;
    this.#countedTokens = used;
    const { limits, onSettleFailed } = this.#services;
    const callId = this.#subject.call.id;
    const counted = dearestTokens(this.#admission?.weights, used - outputTokens, outputTokens);
    limits.use(callId, counted)?.catch((error: unknown) => onSettleFailed(callId, error));
  }

  #keepCheckpoint(tokens: number): void {
    const now = this.#services.clock.monotonic();
    const isDue =
      tokens - this.#checkpointTokens >= checkpointTokens ||
      now - this.#checkpointAt >= checkpointIntervalMs;
    if (!isDue) return;
    this.#checkpointTokens = tokens;
    this.#checkpointAt = now;
    this.#services.ledger.checkpoint(this.#subject.call.id, { outputTokens: tokens });
  }

  #settle({ id, inputTokens, outputTokens, planTokens: weighed, costNano }: UsageRecord): void {
    const { limits, onSettleFailed } = this.#services;
    const settling = limits.settle(id, weighed ?? inputTokens + outputTokens, costNano);
    settling?.catch((error: unknown) => onSettleFailed(id, error));
  }

  #openedCall(admission: Admission): OpenedCall {
    const { call, model, dialect, isStreamed, labels } = this.#subject;
    const { key } = call.caller;
    const reserved = {
      inputTokens: this.#tokens.inputTokens,
      outputTokens: this.#reservedOutput,
      cachedInputTokens: 0,
      reasoningTokens: 0,
    };
    const cost = dearestCost(reserved, model.targets, this.#costTerms());
    return {
      id: call.id,
      startedAt: this.arrivedAt,
      environment: call.environment.name,
      accountId: key.accountId,
      applicationId: key.applicationId,
      application: key.application,
      keyId: key.id,
      model: model.alias,
      dialect,
      capacityClass: admission.capacityClass,
      isStreamed,
      inputTokens: this.#tokens.inputTokens,
      reservedTokens: admission.reservedTokens,
      weights: admission.weights,
      via: call.caller.via,
      endUser: labels.endUser,
      tags: labels.tags,
      costNano: admission.budgeted?.reservedNano ?? cost.costNano,
      priceVersion: cost.priceVersion,
      charge: admission.budgeted?.charge,
    };
  }

  #costTerms(images?: number): CostTerms {
    const { provisionedPool } = this.#subject.call.caller.key;
    const capacityClass = this.#admission?.capacityClass ?? "on-demand";
    const { prices } = this.#services;
    const askedTier = tierAsked(this.#subject.serviceTier);
    return { prices, arrivedAt: this.arrivedAt, capacityClass, provisionedPool, images, askedTier };
  }

  #record({ outcome, status, code, error }: CallEnd, { usage, source }: CountedUsage): UsageRecord {
    const { call, model, dialect, isStreamed, labels } = this.#subject;
    const { key } = call.caller;
    const { receivedAt } = call;
    const admission = this.#admission;
    const firstEventAt = this.#firstEventAt;
    const target = this.path.last?.candidate.target;
    const routing = this.path.routing(outcome);
    // Vectors that nobody gets have no count of images.
    const images = outcome === "completed" ? this.#subject.images : undefined;
    const cost = costOfCall(usage, target, this.#costTerms(images));
    // One object with all fields in a fixed order, for every call.
    return {
      id: call.id,
      startedAt: this.arrivedAt,
      environment: call.environment.name,
      accountId: key.accountId,
      applicationId: key.applicationId,
      application: key.application,
      keyId: key.id,
      model: model.alias,
      dialect,
      target: target?.id,
      capacityClass: admission?.capacityClass ?? "on-demand",
      inputTokens: usage.inputTokens,
      outputTokens: usage.outputTokens,
      cachedInputTokens: usage.cachedInputTokens,
      cacheWriteTokens: usage.cacheWriteTokens || undefined,
      cacheWrite1hTokens: usage.cacheWrite1hTokens || undefined,
      images: images || undefined,
      serviceTier: cost.tier ?? usage.serviceTier,
      costNano: cost.costNano,
      priceVersion: cost.priceVersion,
      usageSource: source,
      outcome,
      status,
      code,
      isStreamed,
      attempts: this.path.attempts,
      firstEventMs: firstEventAt === undefined ? undefined : firstEventAt - receivedAt,
      durationMs: this.#services.clock.monotonic() - receivedAt,
      routing,
      mayBeBilledTwice: routing !== undefined && this.path.mayBeBilledTwice,
      reservedTokens: admission?.reservedTokens,
      planTokens: admission?.weights && planTokens(admission.weights, usage, target),
      via: call.caller.via,
      endUser: labels.endUser,
      tags: labels.tags,
      charge: admission?.budgeted?.charge,
      refusedBy: exhaustedBudget(error?.explanation?.budget),
    };
  }
}
