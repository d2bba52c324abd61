import { abortable } from "../../domain/waiting/abortable.ts";
import type { ChatEvent } from "../../domain/chat/chat.ts";
import type { Clock } from "../../domain/clock.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import type { Model } from "../../domain/model.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { CallerSignal } from "./caller-signal.ts";
import type { Draining } from "../../admission/capacity/place.ts";
import type { OpenStream } from "../../upstream-client/event-batches.ts";
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
  readonly ending: AbortSignal;
  /** Undefined: an unfinished answer is aborted when the caller leaves. */
  readonly drain: Draining | undefined;
  /** Applied to everything sent to the caller. */
  readonly hooks: RunningHooks | undefined;
}

/**
 * A streamed answer that accounts for itself: when it ends, fails or is abandoned, the meter is
 * told once, before the caller. Only a drain is accounted for later.
 */
export class MeteredStream {
  readonly #options: MeteredStreamOptions;
  #first: readonly ChatEvent[] | undefined;
  /** A batch that was requested and not looked at yet. */
  #reading: Promise<readonly ChatEvent[] | undefined> | undefined;
  #finishedChoices = 0;
  /** Whether the upstream has reported the final usage. */
  #isReported = false;
  #isOver = false;
  #failure: GatewayError | undefined;

  constructor(options: MeteredStreamOptions) {
    this.#options = options;
    this.#first = options.open.first;
    options.caller.handOver((reason) => this.#endFor(reason));
  }

  /** Usage of the whole answer; valid after `next` has returned undefined. */
  get usage(): TokenUsage {
    return this.#options.meter.usage;
  }

  /**
   * The next batch of events; undefined at the end of the answer and once the caller has left.
   * Throws `GatewayError`.
   */
  async next(): Promise<readonly ChatEvent[] | undefined> {
    if (this.#isOver) return this.#afterEnd();
    try {
      const events = await this.#readForCaller();
      if (!this.#hasEnded()) {
        const delivered = this.#deliver(events);
        const { hooks } = this.#options;
        const given = delivered && hooks ? await this.#throughHooks(hooks, delivered) : delivered;
        if (!this.#hasEnded()) return given;
      }
    } catch (error) {
      if (!this.#hasEnded()) this.#fail(toCallError(error, this.#options.model));
    }
    return this.#afterEnd();
  }

  /**
   * The caller has left. Closes the upstream or drains it for its usage, always when the answer is
   * finished. Has no effect after the end of the answer.
   */
  cancel(): void {
    if (this.#isOver) return;
    const { drain, usageTimeoutMs } = this.#options;
    const isDelivered = this.#isWhole();
    const account = (): void => this.#leave(isDelivered);
    this.#observeFirst();
    if (this.#awaitsCount()) {
      this.#end(() => void this.#readOn(usageTimeoutMs, account));
    } else if (!this.#isReported && drain?.places.tryTake() === true) {
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

  /** Re-reads the state, which may have changed during an await. */
  #hasEnded(): boolean {
    return this.#isOver;
  }

  async #afterEnd(): Promise<undefined> {
    await this.#options.meter.recorded;
    if (this.#failure !== undefined) throw this.#failure;
    return undefined;
  }

  /** The caller has left, or the gateway ends its call for another reason. */
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
    return this.#isWhole() && !this.#isReported;
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

  /** Applies the hooks to a batch. A hook that throws ends the answer. */
  async #throughHooks(hooks: RunningHooks, events: readonly ChatEvent[]) {
    try {
      return (await hooks.answering({ kind: "events", events })).events;
    } catch (error) {
      // After the caller has left, the answer may be read on for its count.
      if (!this.#isOver) this.#options.open.rest.cancel();
      throw error;
    }
  }

  #fail(failure: GatewayError): void {
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
        if (this.#isReported) break;
        if (!isWhole && this.#isWhole()) {
          isWhole = true;
          cancel();
          cancel = clock.schedule(abort, usageTimeoutMs);
        }
        events = await abortable(open.rest.next(), end);
      }
    } catch {
      // Usage that was not reported is counted as delivered.
    } finally {
      cancel();
      open.rest.cancel();
      account();
    }
  }

  /** Once an answer is finished, a caller that leaves need not wait for its usage. */
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
