import type { Clock } from "../../domain/clock.ts";
import type { CapabilityRow } from "./account/capability-row.ts";
import { CredentialBook, type CredentialOptions } from "./account/credential-book.ts";
import { ModelRegistry } from "./account/model-registry.ts";
import { PromptCache } from "./request/prompt-cache.ts";
import { Quota, type QuotaOptions } from "./account/quota.ts";

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
