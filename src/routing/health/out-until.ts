import type { OutSettings } from "../../domain/settings.ts";

export interface OutNotice {
  readonly forMs: number;
  /** How often in a row, without a time in service as long as the last one out of it. */
  readonly times: number;
  readonly because: string;
}

export interface OutReason {
  readonly because: string;
  /** The provider refuses requests, by a rate limit or until a time: nobody is told. */
  readonly isRefusal: boolean;
  readonly retryAfterMs?: number | undefined;
}

export const longestAskedMs = 300_000;

/**
 * A target is out until a time, for all keys or for one. After that time, an answer to a probe or
 * to an attempt that began later ends it; a failure makes it twice as long, up to a maximum.
 */
export class OutUntil {
  /** Whose calls were refused or failed; undefined: all keys. */
  readonly accountId: string | undefined;
  #times = 0;
  #forMs = 0;
  /** Undefined while in service. */
  #untilMs: number | undefined;
  #sinceMs = 0;
  #returnedAtMs = Number.NEGATIVE_INFINITY;
  #reason: OutReason = { because: "", isRefusal: false };
  #isTold = false;
  #period = 0;

  constructor(accountId?: string) {
    this.accountId = accountId;
  }

  get isOut(): boolean {
    return this.#untilMs !== undefined;
  }

  get isRefusal(): boolean {
    return this.#reason.isRefusal;
  }

  get because(): string {
    return this.#reason.because;
  }

  /** When the time out of service began. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** Changes when it begins and ends: an earlier attempt is no evidence. */
  get period(): number {
    return this.#period;
  }

  refusesAt(nowMs: number): boolean {
    return this.isRefusal && this.leftMs(nowMs) > 0;
  }

  /** 0 in service and once the time is over. */
  leftMs(nowMs: number): number {
    return this.#untilMs === undefined ? 0 : Math.max(0, this.#untilMs - nowMs);
  }

  /** The whole time out of service. */
  outForMs(nowMs: number): number {
    return this.#untilMs === undefined ? 0 : nowMs - this.#sinceMs;
  }

  isDue(atMs: number): boolean {
    return this.#untilMs !== undefined && atMs >= this.#untilMs;
  }

  /** Undefined when nobody is to be told. */
  begin(
    nowMs: number,
    { firstMs, longestMs }: OutSettings,
    reason: OutReason,
  ): OutNotice | undefined {
    const wasWell = !this.isOut && nowMs - this.#returnedAtMs >= this.#forMs;
    this.#times = wasWell ? 1 : this.#times + 1;
    if (!this.isOut) this.#sinceMs = nowMs;
    const ownMs = Math.min(longestMs, firstMs * 2 ** (this.#times - 1));
    this.#forMs = Math.max(ownMs, Math.min(reason.retryAfterMs ?? 0, longestAskedMs));
    this.#untilMs = nowMs + this.#forMs;
    this.#reason = reason;
    this.#period += 1;
    if (reason.isRefusal) return undefined;
    this.#isTold = true;
    return { forMs: this.#forMs, times: this.#times, because: reason.because };
  }

  prolong(untilMs: number): void {
    if (this.#untilMs === undefined) return;
    this.#untilMs = Math.max(this.#untilMs, untilMs);
  }

  /** Returns whether anybody was told that it was out. */
  end(nowMs: number): boolean {
    const wasTold = this.#isTold;
    this.#isTold = false;
    this.#untilMs = undefined;
    this.#returnedAtMs = nowMs;
    this.#period += 1;
    return wasTold;
  }
}
