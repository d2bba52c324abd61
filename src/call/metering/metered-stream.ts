import { type EndSignal, EndSource } from "../../domain/waiting/end-signal.ts";
import { WaitingReader } from "../../domain/waiting/flow.ts";
import type { ChatEvent } from "../../domain/chat/answer.ts";
import type { Clock } from "../../domain/clock.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { Model } from "../../domain/model.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { Draining } from "../../admission/capacity/place.ts";
import type { EventBatches, OpenStream } from "../../upstream-client/event-reader.ts";
import type { RunningHooks } from "../../snapshot/call-hooks.ts";
import type { Meter } from "./meter.ts";
import { toCallError } from "../run-call.ts";

export interface MeteredStreamOptions {
  readonly open: OpenStream<ChatEvent>;
  readonly meter: Meter;
  readonly model: Model;
  readonly clock: Pick<Clock, "schedule">;
  /** Number of requested choices. */
  readonly choices: number;
  /** The upstream's answer runs under its signal. */
  readonly caller: CallerSignal;
  /** How long to wait for the usage of a finished answer after the caller has left. */
  readonly usageTimeoutMs: number;
  /** Aborts when the process shuts down; nothing is awaited after that. */
  readonly ending: EndSignal;
  /** Undefined: an unfinished answer is aborted when the caller leaves. */
  readonly drain: Draining | undefined;
  /** Applied to all events sent to the caller. */
  readonly hooks: RunningHooks | undefined;
}

/**
 * A streamed answer that accounts for itself: when it ends, fails or is abandoned, the meter is
 * notified once, before the caller. Only a drain is accounted for later.
 */
export class MeteredStream implements EventBatches<ChatEvent> {
  readonly #options: MeteredStreamOptions;
  readonly #reader = new WaitingReader();
  #first: readonly ChatEvent[] | undefined;
  /** A batch that the hooks have returned. */
  #given: readonly ChatEvent[] | undefined;
  /** Whether the hooks have a batch. */
  #isInHooks = false;
  #finishedChoices = 0;
  /** Whether the upstream has reported the final usage. */
  #isReported = false;
  #hasEnded = false;
  /** Whether its end is in the ledger, if that is awaited. */
  #isRecorded = false;
  #failure: GatewayError | undefined;

  constructor(options: MeteredStreamOptions) {
    this.#options = options;
    this.#first = options.open.first;
    options.caller.handOver((reason) => this.#endFor(reason));
  }

  /** Usage of the whole answer; valid once it is over. */
  get usage(): TokenUsage {
    return this.#options.meter.usage;
  }

  /** As in `Meter`. */
  get costNano(): number | undefined {
    return this.#options.meter.costNano;
  }

  /** Whether the answer has ended, or the caller has left. */
  get isOver(): boolean {
    return this.#isRecorded && this.#failure === undefined;
  }

  /** Throws `GatewayError`. */
  take(): readonly ChatEvent[] | undefined {
    const given = this.#given ?? this.#takeNext();
    this.#given = undefined;
    if (!this.#hasEnded) return given;
    if (this.#failure !== undefined && this.#isRecorded) throw this.#failure;
    return undefined;
  }

  whenReady(call: () => void): void {
    this.#reader.whenReady(call);
    if (!this.#hasEnded && !this.#isInHooks) this.#options.open.rest.whenReady(this.#reader.wake);
  }

  /**
   * The caller has left. Closes the upstream or drains it for its usage, always when the answer is
   * finished. Has no effect after the end of the answer.
   */
  cancel(): void {
    if (this.#hasEnded) return;
    const { drain, usageTimeoutMs } = this.#options;
    const isDelivered = this.#isWhole();
    const account = (): void => this.#leave(isDelivered);
    this.#observeFirst();
    if (this.#awaitsCount()) {
      this.#end(() => this.#readOn(usageTimeoutMs, account));
    } else if (!this.#isReported && drain?.places.tryTake() === true) {
      const leavePlace = (): void => {
        drain.places.giveBack();
        account();
      };
      this.#end(() => this.#readOn(drain.timeoutMs, leavePlace));
    } else {
      this.#end(account);
      this.#options.open.rest.cancel();
    }
  }

  #takeNext(): readonly ChatEvent[] | undefined {
    if (this.#hasEnded || this.#isInHooks) return undefined;
    const { open, hooks, meter, model } = this.#options;
    try {
      const events = this.#first ?? open.rest.take();
      this.#first = undefined;
      if (events === undefined) {
        if (open.rest.isOver) this.#end(() => meter.completed());
        return undefined;
      }
      for (const event of events) this.#observe(event, true);
      if (hooks === undefined) return events;
      void this.#passThrough(hooks, events);
    } catch (error) {
      const usage = error instanceof UpstreamFailure ? error.details.usage : undefined;
      if (usage !== undefined) meter.reportedSoFar(usage);
      this.#fail(toCallError(error, model));
    }
    return undefined;
  }

  /** Applies the hooks to a batch. A hook that throws ends the answer. */
  async #passThrough(hooks: RunningHooks, events: readonly ChatEvent[]): Promise<void> {
    this.#isInHooks = true;
    try {
      this.#given = (await hooks.answering({ kind: "events", events })).events;
    } catch (error) {
      // After the caller has left, the answer may still be read for its usage.
      if (!this.#hasEnded) {
        this.#fail(toCallError(error, this.#options.model));
        this.#options.open.rest.cancel();
      }
    }
    this.#isInHooks = false;
    this.#reader.wake();
  }

  /** The caller has left, or the gateway ends its call for another reason. */
  #endFor(reason: unknown): void {
    if (this.#hasEnded) return;
    if (!(reason instanceof GatewayError)) return this.cancel();
    const isProcessEnding = reason.row.status >= 500;
    const { meter, caller, usageTimeoutMs } = this.#options;
    if (isProcessEnding || !this.#awaitsCount()) {
      this.#fail(reason);
      return caller.abort(reason);
    }
    this.#failure = reason;
    this.#end(() => this.#readOn(usageTimeoutMs, () => meter.failed(reason)));
  }

  /** Whether every choice is finished. */
  #isWhole(): boolean {
    return this.#finishedChoices >= this.#options.choices;
  }

  #awaitsCount(): boolean {
    return this.#isWhole() && !this.#isReported;
  }

  #end(account: () => void): void {
    this.#hasEnded = true;
    this.#given = undefined;
    this.#options.caller.release();
    account();
    const { recorded } = this.#options.meter;
    if (recorded === undefined) this.#tellEnd();
    else void recorded.then(() => this.#tellEnd());
  }

  #tellEnd(): void {
    this.#isRecorded = true;
    this.#reader.wake();
  }

  #fail(failure: GatewayError): void {
    if (this.#hasEnded) return;
    this.#failure = failure;
    this.#end(() => {
      if (failure.row.status === 499) this.#leave(this.#isWhole());
      else this.#options.meter.failed(failure);
    });
  }

  /** A finished answer counts as completed, even if the caller closed the connection first. */
  #leave(isWhole: boolean): void {
    const { meter } = this.#options;
    if (isWhole) meter.completed();
    else meter.abandoned();
  }

  /**
   * Drains the answer to the upstream's usage report, the timeout or the shutdown. An answer that
   * finishes meanwhile gets the usage timeout from then on.
   */
  #readOn(timeoutMs: number, account: () => void): void {
    const { open, clock, usageTimeoutMs, ending } = this.#options;
    const { rest } = open;
    let isRunning = true;
    const stop = (): void => {
      if (!isRunning) return;
      isRunning = false;
      cancelTimeout();
      ending.removeEventListener("abort", stop);
      rest.cancel();
      account();
    };
    let isWhole = this.#isWhole();
    let cancelTimeout = clock.schedule(stop, timeoutMs);
    const advance = (): void => {
      if (!isRunning) return;
      if (!this.#observeRest() || this.#isReported || rest.isOver) return stop();
      if (!isWhole && this.#isWhole()) {
        isWhole = true;
        cancelTimeout();
        cancelTimeout = clock.schedule(stop, usageTimeoutMs);
      }
      rest.whenReady(advance);
    };
    if (ending.aborted) return stop();
    ending.addEventListener("abort", stop, { once: true });
    advance();
  }

  /** False if the answer has failed: usage that was not reported is counted as delivered. */
  #observeRest(): boolean {
    const { rest } = this.#options.open;
    try {
      for (let events = rest.take(); events !== undefined; events = rest.take()) {
        for (const event of events) this.#observe(event, false);
        if (this.#isReported) break;
      }
      return true;
    } catch {
      return false;
    }
  }

  /** The first batch may hold the usage even if it was never read. */
  #observeFirst(): void {
    for (const event of this.#first ?? []) this.#observe(event, false);
    this.#first = undefined;
  }

  #observe(event: ChatEvent, isDelivered: boolean): void {
    const { meter } = this.#options;
    switch (event.type) {
      case "text-delta":
      case "refusal-delta":
      case "reasoning-delta":
        if (isDelivered) meter.delivering(event.text.length);
        return;
      case "tool-call-delta":
      case "function-call-delta":
        if (isDelivered) meter.delivering(event.arguments.length);
        return;
      case "usage-report":
        this.#report(event);
        return;
      case "usage-start":
        meter.reportedSoFar(event.usage);
        return;
      case "choice-finish":
        this.#finishedChoices += 1;
        return;
      // Its text was delivered before it.
      case "reasoning-block":
      case "answer-start":
      case "tool-call-start":
      case "function-call-start":
        return;
    }
  }

  /** Only a report on a finished answer covers the whole. */
  #report({ usage, isPart }: Extract<ChatEvent, { type: "usage-report" }>): void {
    const { meter } = this.#options;
    if (isPart === true) return meter.reportedPart(usage);
    if (!this.#isWhole()) return meter.reportedSoFar(usage);
    this.#isReported = true;
    meter.reported(usage);
  }
}

/**
 * The signal of a caller for an answer that may outlive it. Aborts `signal` when the caller leaves,
 * until `handOver`.
 */
export class CallerSignal {
  readonly source: EndSignal;
  readonly #end = new EndSource();
  #onEnd = (reason: unknown): void => this.abort(reason);
  readonly #follow = (): void => this.#onEnd(this.source.reason);

  constructor(source: EndSignal) {
    this.source = source;
    if (source.aborted) this.#follow();
    else source.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): EndSignal {
    return this.#end;
  }

  /** From now on only `onEnd` is called when the caller leaves. */
  handOver(onEnd: (reason: unknown) => void): void {
    this.#onEnd = onEnd;
    if (this.source.aborted) this.#follow();
  }

  /** Aborts `signal`. */
  abort(reason: unknown): void {
    this.#end.abort(reason);
  }

  /** Stops following the caller. */
  release(): void {
    this.source.removeEventListener("abort", this.#follow);
  }
}
