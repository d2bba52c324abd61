import type { Clock } from "../../domain/clock.ts";
import type { WebhookSettings } from "../../domain/settings.ts";
import type { EventBatch, EventOutbox } from "./event-outbox.ts";
import { signWebhook } from "./sign-webhook.ts";

export interface WebhookSenderOptions {
  readonly outbox: Pick<EventOutbox, "next" | "confirm">;
  readonly settings: WebhookSettings;
  readonly clock: Clock;
  readonly on: WebhookEvents;
}

export interface WebhookEvents {
  eventsSent(events: number): void;
  /** They are sent again after a pause. */
  eventsFailed(error: unknown): void;
}

const firstPauseMs = 1_000;

/** Posts the events of the outbox in order, one batch at a time, until the receiver has them. */
export class WebhookSender {
  readonly #options: WebhookSenderOptions;
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;
  #failures = 0;
  #isWoken = false;
  #wake: (() => void) | undefined;

  constructor(options: WebhookSenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** There are new events. */
  wake(): void {
    this.#isWoken = true;
    if (this.#failures === 0) this.#wake?.();
  }

  /** Ends the request that is open; its batch is sent again after the next start. */
  async stop(): Promise<void> {
    this.#end.abort();
    this.#wake?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#end.signal.aborted) {
      this.#isWoken = false;
      const hasSent = await this.#sendNext();
      if (hasSent) continue;
      if (this.#failures > 0) await this.#pause();
      else if (!this.#isWoken) await this.#pause(Infinity);
    }
  }

  /** Whether a batch was sent; false if there is none, or if it failed. */
  async #sendNext(): Promise<boolean> {
    const { outbox, settings, on } = this.#options;
    try {
      const batch = await outbox.next(settings.batchEvents);
      if (batch === undefined) return false;
      await this.#post(batch);
      await outbox.confirm(batch);
      this.#failures = 0;
      on.eventsSent(batch.lines.length);
      return true;
    } catch (error) {
      this.#failures += 1;
      if (!this.#end.signal.aborted) on.eventsFailed(error);
      return false;
    }
  }

  async #post({ lines }: EventBatch): Promise<void> {
    const { settings, clock } = this.#options;
    const body = `{"type":"usage.recorded","data":[${lines.join(",")}]}`;
    const message = { body, secret: settings.secret.reveal(), nowMs: clock.now() };
    const response = await fetch(settings.url, {
      method: "POST",
      headers: { "content-type": "application/json", ...signWebhook(message) },
      body,
      // Usage goes to the configured address only.
      redirect: "manual",
      signal: AbortSignal.any([this.#end.signal, AbortSignal.timeout(settings.timeoutMs)]),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`the receiver answered with status ${response.status}`);
  }

  #pause(pauseMs = this.#pauseMs): Promise<void> {
    if (this.#end.signal.aborted) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const cancel =
      pauseMs === Infinity ? undefined : this.#options.clock.schedule(resolve, pauseMs);
    return promise.finally(() => {
      cancel?.();
      this.#wake = undefined;
    });
  }

  get #pauseMs(): number {
    const { longestPauseMs } = this.#options.settings;
    return Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#failures - 1, 20));
  }
}
