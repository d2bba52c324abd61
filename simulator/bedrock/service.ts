import type { Clock } from "../time.ts";
import { BedrockError } from "./errors.ts";
import { texts } from "../faults/bedrock-modes.ts";
import { CredentialBook, type CredentialOptions } from "./credentials.ts";
import type { CapabilityRow } from "./capabilities.ts";
import { ModelRegistry } from "./models.ts";
import { PromptCache } from "./read-request.ts";

/**
 * Signatures are always verified. Without credentials and bearer keys, `demoCredentials` and
 * `demoApiKey` are valid.
 */
export interface BedrockOptions extends CredentialOptions {
  /** Signatures for other regions are refused. Default: any region. */
  readonly region?: string | undefined;
  /** By id or ARN, overrides of the model's row. */
  readonly models?: Readonly<Record<string, Partial<CapabilityRow>>> | undefined;
  /** Wall clock, ms: models whose life ended before are refused. Default: none. */
  readonly modelsAsOf?: number | undefined;
  /** Default: none. */
  readonly quotas?: QuotaOptions | undefined;
}

/** The state that all calls of this wire share. */
export interface BedrockService {
  readonly credentials: CredentialBook;
  readonly models: ModelRegistry;
  readonly cache: PromptCache;
  readonly quota: Quota;
  readonly region: string | undefined;
}

export function createBedrock(options: BedrockOptions, clock: Clock): BedrockService {
  const { region, models = {}, modelsAsOf, quotas = {} } = options;
  return {
    credentials: new CredentialBook(options),
    models: new ModelRegistry({ models, region, modelsAsOf }),
    cache: new PromptCache(),
    quota: new Quota(quotas, clock),
    region,
  };
}

/** The limits of one model; undefined: no limit. */
interface ModelQuota {
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
