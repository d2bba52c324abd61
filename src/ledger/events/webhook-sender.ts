import { createHash, createHmac } from "node:crypto";
import type { Clock } from "../../domain/clock.ts";
import type { WebhookSettings } from "../../domain/settings.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { wait } from "../../domain/waiting/wait.ts";
import type { BudgetAlert, CallBatch, StoredCalls } from "../../store/store.ts";

export interface WebhookSenderOptions {
  readonly calls: StoredCalls;
  /** The event of a call, as JSON. */
  readonly eventOf: (call: UsageRecord) => string;
  readonly alertEventOf: (alert: BudgetAlert) => AlertEvent;
  /** Tells this gateway from others on the database. */
  readonly holder: string;
  readonly settings: WebhookSettings;
  readonly clock: Clock;
  readonly on: WebhookEvents;
}

export interface AlertEvent {
  readonly type: string;
  readonly data: object;
}

export interface WebhookEvents {
  eventsSent(events: number): void;
  /** They are sent again after a pause. */
  eventsFailed(error: unknown): void;
}

const firstPauseMs = 1_000;
/** How often it looks for calls that were stored. */
const lookMs = 1_000;
/** How much longer than a request a gateway keeps its turn, whose clock may differ from others'. */
const turnMs = 60_000;

/**
 * Posts events in the order in which calls were stored, one batch at a time until it is taken. Alerts
 * follow the calls that caused them.
 */
export class WebhookSender {
  readonly #options: WebhookSenderOptions;
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;
  #failures = 0;

  constructor(options: WebhookSenderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends the request that is open; its batch is sent again after the next start. */
  async stop(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#end.signal.aborted) {
      const hasSent = await this.#sendNext();
      const pauseMs = this.#failures > 0 ? this.#pauseMs : lookMs;
      if (!hasSent) await wait(pauseMs, this.#end.signal, this.#options.clock);
    }
  }

  /** Whether a batch was sent; false if there is none, or if it failed. */
  async #sendNext(): Promise<boolean> {
    const { calls, holder, settings, clock, on } = this.#options;
    const nowMs = clock.now();
    const untilMs = nowMs + settings.timeoutMs + turnMs;
    try {
      const batch = await calls.next({ holder, nowMs, untilMs, limit: settings.batchEvents });
      if (batch === undefined) return false;
      await this.#post(batch);
      await calls.confirm(holder, batch);
      this.#failures = 0;
      on.eventsSent(batch.calls.length + batch.alerts.length + batch.repriced.length);
      return true;
    } catch (error) {
      this.#failures += 1;
      if (!this.#end.signal.aborted) on.eventsFailed(error);
      return false;
    }
  }

  async #post({ calls, alerts, repriced }: CallBatch): Promise<void> {
    const { eventOf, alertEventOf } = this.#options;
    if (calls.length > 0) {
      await this.#send(`{"type":"usage.recorded","data":[${calls.map(eventOf).join(",")}]}`);
    }
    for (const alert of alerts) await this.#send(JSON.stringify(alertEventOf(alert)));
    for (const { summary } of repriced) {
      await this.#send(`{"type":"usage.repriced","data":${summary}}`);
    }
  }

  async #send(body: string): Promise<void> {
    const { settings, clock } = this.#options;
    const signature = signWebhook(body, settings.secret.reveal(), clock.now());
    const response = await fetch(settings.url, {
      method: "POST",
      headers: { "content-type": "application/json", ...signature },
      body,
      // Usage goes to the configured address only.
      redirect: "manual",
      signal: AbortSignal.any([this.#end.signal, AbortSignal.timeout(settings.timeoutMs)]),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`the receiver answered with status ${response.status}`);
  }

  get #pauseMs(): number {
    const { longestPauseMs } = this.#options.settings;
    return Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(this.#failures - 1, 20));
  }
}

/**
 * Headers of the specification of Standard Webhooks. An equal body has an equal id. `secret` is
 * `whsec_` and the key in base64, `nowMs` in milliseconds since the epoch.
 */
export function signWebhook(body: string, secret: string, nowMs: number) {
  const id = `msg_${createHash("sha256").update(body).digest("hex").slice(0, 32)}`;
  const timestamp = String(Math.floor(nowMs / 1000));
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}
