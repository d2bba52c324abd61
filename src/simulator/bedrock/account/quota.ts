import type { Clock } from "../../../domain/clock.ts";
import { BedrockError } from "../bedrock-error.ts";
import { texts } from "../../faults/bedrock-modes.ts";

/** The limits of one model; undefined: no limit. */
export interface ModelQuota {
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  /** A provisioned or imported model refuses this many calls before it is ready. Default 0. */
  readonly notReadyCalls?: number;
}

export interface QuotaOptions extends ModelQuota {
  /** By id or ARN, in place of the limits for all models. */
  readonly models?: Readonly<Record<string, ModelQuota>>;
}

/**
 * The provider's limits, in token buckets of each model that hold a minute's worth. A call takes
 * its input and its longest possible output.
 */
export class Quota {
  readonly #options: QuotaOptions;
  readonly #clock: Clock;
  readonly #models = new Map<string, ModelState>();

  constructor(options: QuotaOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Takes a request and its tokens, or takes nothing and returns the refusal. */
  refusal(model: string, tokens: number): BedrockError | undefined {
    const state = this.#stateOf(model);
    if (state.notReadyCalls > 0) {
      state.notReadyCalls -= 1;
      return new BedrockError("ModelNotReadyException", texts.notReady);
    }
    const nowMs = this.#clock.monotonic();
    if (!state.requests.has(1, nowMs)) {
      return new BedrockError("ThrottlingException", texts.tooManyRequests);
    }
    if (!state.tokens.has(tokens, nowMs)) {
      return new BedrockError("ThrottlingException", texts.tooManyTokens);
    }
    state.requests.take(1);
    state.tokens.take(tokens);
    return undefined;
  }

  #stateOf(model: string): ModelState {
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    const quota = this.#options.models?.[model] ?? this.#options;
    const nowMs = this.#clock.monotonic();
    const state: ModelState = {
      requests: new Bucket(quota.requestsPerMinute, nowMs),
      tokens: new Bucket(quota.tokensPerMinute, nowMs),
      notReadyCalls: isLoaded(model) ? (quota.notReadyCalls ?? 0) : 0,
    };
    // Callers choose the names of models, so the map is bounded.
    if (this.#models.size >= modelsLimit) this.#models.clear();
    this.#models.set(model, state);
    return state;
  }
}

const modelsLimit = 10_000;

interface ModelState {
  readonly requests: Bucket;
  readonly tokens: Bucket;
  notReadyCalls: number;
}

function isLoaded(model: string): boolean {
  return /:(?:provisioned|imported)-model\//.test(model);
}

/** A token bucket, full at first. */
class Bucket {
  readonly #capacity: number;
  #level: number;
  #filledAtMs: number;

  constructor(perMinute: number | undefined, nowMs: number) {
    this.#capacity = perMinute ?? Number.POSITIVE_INFINITY;
    this.#level = this.#capacity;
    this.#filledAtMs = nowMs;
  }

  has(amount: number, nowMs: number): boolean {
    if (this.#capacity === Number.POSITIVE_INFINITY) return true;
    const refilled = ((nowMs - this.#filledAtMs) * this.#capacity) / 60_000;
    this.#level = Math.min(this.#capacity, this.#level + refilled);
    this.#filledAtMs = nowMs;
    return this.#level >= amount;
  }

  take(amount: number): void {
    this.#level -= amount;
  }
}
