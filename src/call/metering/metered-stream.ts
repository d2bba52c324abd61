import { abortable } from "../../domain/waiting/abortable.ts";
import type { ChatEvent } from "../../domain/chat/chat.ts";
import type { Clock } from "../../domain/clock.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Model } from "../../domain/model.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { CallerSignal } from "./caller-signal.ts";
import type { Draining } from "../../admission/capacity/place.ts";
import type { OpenStream } from "../../upstream-client/event-batches.ts";
import type { Meter } from "./meter.ts";
import { toCallError } from "../run-call.ts";

export interface MeteredStreamOptions {
  readonly open: OpenStream<ChatEvent>;
  readonly meter: Meter;
  readonly model: Model;
  readonly clock: Pick<Clock, "schedule">;
  /** Choices that were asked for. */
  readonly choices: number;
  /** The upstream's answer runs under its signal. */
  readonly caller: CallerSignal;
  /** How long the count of a finished answer is awaited when the caller is not there any more. */
  readonly usageTimeoutMs: number;
  /** Nothing is awaited any more once it has fired: the process ends. */
  readonly ending: AbortSignal;
  /** Undefined: an answer that is not finished is aborted when the caller leaves. */
  readonly drain: Draining | undefined;
}

/**
 * A streamed answer that accounts for itself: when it ends, fails or is left, the meter learns of
 * it before the caller does, once. Only what is read on for nobody is accounted for later.
 */
export class MeteredStream {
  readonly #options: MeteredStreamOptions;
  #first: readonly ChatEvent[] | undefined;
  /** A batch that was asked for and that nobody has looked at. */
  #reading: Promise<readonly ChatEvent[] | undefined> | undefined;
  #finishedChoices = 0;
  /** Whether the upstream has said all that the account needs. */
  #isTold = false;
  #isOver = false;
  #failure: GatewayError | undefined;

  constructor(options: MeteredStreamOptions) {
    this.#options = options;
    this.#first = options.open.first;
    options.caller.handOver((reason) => this.#endFor(reason));
  }

  /** Counts of the whole answer; meaningful after `next` has returned undefined. */
  get usage(): TokenUsage {
    return this.#options.meter.usage;
  }

  /**
   * The next batch of events; undefined at the end of a whole answer, and once the caller has left.
   * Throws `GatewayError`.
   */
  async next(): Promise<readonly ChatEvent[] | undefined> {
    if (this.#isOver) return this.#afterEnd();
    try {
      const events = await this.#readForCaller();
      if (!this.#hasEnded()) return this.#deliver(events);
    } catch (error) {
      if (!this.#hasEnded()) this.#fail(toCallError(error, this.#options.model));
    }
    return this.#afterEnd();
  }

  /**
   * The caller is gone. Closes the upstream, or reads it on for its count: always when the answer is
   * finished. After the end of the answer it changes nothing.
   */
  cancel(): void {
    if (this.#isOver) return;
    const { drain, usageTimeoutMs } = this.#options;
    const isDelivered = this.#isWhole();
    const account = (): void => this.#leave(isDelivered);
    this.#observeFirst();
    if (this.#awaitsCount()) {
      this.#end(() => void this.#readOn(usageTimeoutMs, account));
    } else if (!this.#isTold && drain?.places.tryTake() === true) {
      const leavePlace = (): void => {
        drain.places.giveBack();
        account();
      };
      this.#end(() => void this.#readOn(drain.timeoutMs, leavePlace));
    } else {
      this.#options.open.rest.cancel();
      this.#end(account);
    }
  }

  /** What was read for the caller may end here, by itself or because somebody else ended it. */
  #hasEnded(): boolean {
    return this.#isOver;
  }

  #afterEnd(): undefined {
    if (this.#failure !== undefined) throw this.#failure;
    return undefined;
  }

  /** The caller has left, or the gateway ends its call for another reason and tells it. */
  #endFor(reason: unknown): void {
    if (this.#isOver) return;
    if (!(reason instanceof GatewayError)) return this.cancel();
    const isProcessEnding = reason.row.status >= 500;
    if (isProcessEnding || !this.#awaitsCount()) return this.#options.caller.abort(reason);
    this.#failure = reason;
    const { meter, usageTimeoutMs } = this.#options;
    this.#end(() => void this.#readOn(usageTimeoutMs, () => meter.failed(reason)));
  }

  /** Whether every choice is finished. */
  #isWhole(): boolean {
    return this.#finishedChoices >= this.#options.choices;
  }

  #awaitsCount(): boolean {
    return this.#isWhole() && !this.#isTold;
  }

  #end(account: () => void): void {
    this.#isOver = true;
    this.#options.caller.release();
    account();
  }

  #deliver(events: readonly ChatEvent[] | undefined): readonly ChatEvent[] | undefined {
    this.#reading = undefined;
    for (const event of events ?? []) this.#observe(event, true);
    if (events === undefined) this.#end(() => this.#options.meter.completed());
    return events;
  }

  #fail(failure: GatewayError): void {
    this.#failure = failure;
    this.#end(() => {
      if (failure.row.status === 499) this.#leave(this.#isWhole());
      else this.#options.meter.failed(failure);
    });
  }

  /** Finished wins over closed: nobody has to wait for the connection to end. */
  #leave(isWhole: boolean): void {
    const { meter } = this.#options;
    if (isWhole) meter.completed();
    else meter.abandoned();
  }

  /**
   * To the upstream's count, or as long as it may take and the process lives; what comes is not
   * delivered to anybody. An answer that is finished meanwhile gets its time for the count from then
   * on.
   */
  async #readOn(timeoutMs: number, account: () => void): Promise<void> {
    const { open, clock, usageTimeoutMs, ending } = this.#options;
    const timeOut = new AbortController();
    const abort = (): void => timeOut.abort();
    let cancel = clock.schedule(abort, timeoutMs);
    const end = AbortSignal.any([ending, timeOut.signal]);
    try {
      let isWhole = this.#isWhole();
      let events = await abortable(this.#reading ?? this.#read(), end);
      while (events !== undefined) {
        for (const event of events) this.#observe(event, false);
        if (this.#isTold) break;
        if (!isWhole && this.#isWhole()) {
          isWhole = true;
          cancel();
          cancel = clock.schedule(abort, usageTimeoutMs);
        }
        events = await abortable(open.rest.next(), end);
      }
    } catch {
      // Whatever ended it: what the upstream did not say is counted as delivered.
    } finally {
      cancel();
      open.rest.cancel();
      account();
    }
  }

  /** A finished answer goes on without its caller, who need not wait for it. */
  #readForCaller(): Promise<readonly ChatEvent[] | undefined> {
    const reading = this.#read();
    return this.#isWhole() ? abortable(reading, this.#options.caller.source) : reading;
  }

  #read(): Promise<readonly ChatEvent[] | undefined> {
    const first = this.#first;
    this.#first = undefined;
    this.#reading = first === undefined ? this.#options.open.rest.next() : Promise.resolve(first);
    return this.#reading;
  }

  /** What came at once and was never asked for may hold the count. */
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

  /** Only what is said of a finished answer is said of the whole. */
  #report({ usage, isPart }: Extract<ChatEvent, { type: "usage-report" }>): void {
    const { meter } = this.#options;
    if (isPart === true) return meter.reportedPart(usage);
    if (!this.#isWhole()) return meter.reportedSoFar(usage);
    this.#isTold = true;
    meter.reported(usage);
  }
}
