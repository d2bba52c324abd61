import type { Clock } from "../../domain/clock.ts";
import { isSameValue } from "../../domain/json-object.ts";
import type { OtlpSettings } from "../../domain/settings.ts";
import { hasSettledWithin } from "../../domain/waiting/wait.ts";
import type { MetricsSender } from "./metrics-sender.ts";

export interface MetricsExportOptions {
  readonly clock: Clock;
  /** The page of metrics of all processes. */
  readonly page: () => string | Promise<string>;
  readonly open: (settings: OtlpSettings) => Promise<MetricsSender>;
  readonly on: {
    sent(times: number): void;
    failed(times: number, error: unknown): void;
  };
}

const graceMs = 500;
/** Longest wait at the end of the process. */
const lastMs = 1_000;

/** Sends the page of metrics at intervals, one page at a time. */
export class MetricsExport {
  readonly #options: MetricsExportOptions;
  #settings: OtlpSettings | undefined;
  #sender: Promise<MetricsSender> | undefined;
  #sending: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(options: MetricsExportOptions) {
    this.#options = options;
  }

  /** Follows the configuration. */
  configure(otlp: OtlpSettings | undefined): void {
    const settings = otlp?.sendsMetrics === true ? otlp : undefined;
    if (isSameValue(settings, this.#settings)) return;
    this.#close();
    this.#settings = settings;
    this.#sender = settings && this.#options.open(settings);
    // The first sending reports it.
    this.#sender?.catch(() => undefined);
    this.#schedule();
  }

  /** Sends the last values, for at most a second. */
  async stop(): Promise<void> {
    this.#cancelTimer?.();
    if (this.#settings === undefined) return;
    const last = (this.#sending ?? Promise.resolve()).then(() => this.#send());
    await hasSettledWithin(last, lastMs, this.#options.clock);
    this.#settings = undefined;
    this.#close();
  }

  #close(): void {
    void this.#sender?.then((sender) => sender.close()).catch(() => undefined);
    this.#sender = undefined;
  }

  #schedule(): void {
    this.#cancelTimer?.();
    const { clock } = this.#options;
    const settings = this.#settings;
    if (settings === undefined) return;
    this.#cancelTimer = clock.schedule(() => {
      this.#sending = this.#send().finally(() => {
        if (this.#settings === settings) this.#schedule();
      });
    }, settings.metricsIntervalMs);
  }

  /** Never rejects. */
  async #send(): Promise<void> {
    const { clock, page, on } = this.#options;
    const { timeoutMs = 0 } = this.#settings ?? {};
    try {
      const sender = await this.#sender;
      const sending = sender?.send(await page(), clock.now());
      if (sending === undefined) return;
      if (!(await hasSettledWithin(sending, timeoutMs + graceMs, clock))) {
        throw new Error("the collector did not answer in time");
      }
      await sending;
      on.sent(1);
    } catch (error) {
      on.failed(1, error);
    }
  }
}
