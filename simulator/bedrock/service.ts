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
  /** The model refuses this many calls before it is ready. Default 0. */
  readonly notReadyCalls?: number;
}

export interface QuotaOptions {
  /** By id or ARN. Other models have no limits. */
  readonly models?: Readonly<Record<string, ModelQuota>>;
}

/** The provider's limits in fixed minutes. A call takes its input and its longest possible output. */
export class Quota {
  readonly #models: ReadonlyMap<string, ModelState>;
  readonly #clock: Clock;

  constructor({ models = {} }: QuotaOptions, clock: Clock) {
    this.#clock = clock;
    this.#models = new Map(
      Object.entries(models).map(([model, quota]) => [
        model,
        { quota, refused: 0, beganAtMs: clock.monotonic(), requests: 0, tokens: 0 },
      ]),
    );
  }

  /** Takes a request and its tokens, or takes nothing and returns the refusal. */
  refusal(model: string, tokens: number): BedrockError | undefined {
    const state = this.#models.get(model);
    if (state === undefined) return undefined;
    const { requestsPerMinute, tokensPerMinute, notReadyCalls = 0 } = state.quota;
    if (state.refused < notReadyCalls) {
      state.refused += 1;
      return new BedrockError("ModelNotReadyException", texts.notReady);
    }
    const nowMs = this.#clock.monotonic();
    if (nowMs - state.beganAtMs >= 60_000) {
      Object.assign(state, { beganAtMs: nowMs, requests: 0, tokens: 0 });
    }
    if (state.requests + 1 > (requestsPerMinute ?? Infinity)) {
      return new BedrockError("ThrottlingException", texts.tooManyRequests);
    }
    if (state.tokens + tokens > (tokensPerMinute ?? Infinity)) {
      return new BedrockError("ThrottlingException", texts.tooManyTokens);
    }
    state.requests += 1;
    state.tokens += tokens;
    return undefined;
  }
}

interface ModelState {
  readonly quota: ModelQuota;
  refused: number;
  beganAtMs: number;
  requests: number;
  tokens: number;
}
