import type { Pool } from "../domain/limits/capacity.ts";
import type { Environment } from "../domain/model.ts";
import type { IdempotencySettings } from "../domain/idempotency-settings.ts";
import type { Plan } from "../domain/limits/plan.ts";
import type { RetentionSettings } from "../domain/accounts/retention.ts";
import type { OverloadSettings, RoutingSettings } from "../domain/routing-settings.ts";
import type { Secret } from "../domain/keys/secret.ts";
import type { DrainSettings, ImageFetchSettings, Timeouts } from "../domain/upstream-settings.ts";
import type { Role } from "../domain/accounts/user.ts";
import type { BedrockSettings } from "../upstreams/bedrock/settings.ts";
import type { ConfigFile } from "./schema/schema.ts";
import type { ListenAddress } from "./schema/values.ts";

export type { ListenAddress } from "./schema/values.ts";

/** A valid configuration: read whole, checked whole, never changed. */
export interface Config {
  readonly listen: { readonly data: ListenAddress; readonly admin: ListenAddress };
  readonly storage: StorageSettings;
  readonly dataDir: string;
  readonly limits: LimitSettings;
  readonly http: HttpSettings;
  readonly streams: StreamSettings;
  /** Of whole answers of upstreams. */
  readonly answers: {
    readonly chatLimitBytes: number;
    readonly chatValues: number;
    readonly embeddingLimitBytes: number;
  };
  readonly shutdown: { readonly preStopMs: number; readonly drainTimeoutMs: number };
  readonly auth: {
    /** The first makes, all verify; none: the one that is kept in the data directory. */
    readonly peppers: readonly Secret[];
    readonly snapshotMaxAgeMs: number;
  };
  readonly admin: AdminSettings;
  readonly audit: AuditSettings;
  readonly ledger: LedgerSettings;
  readonly retention: RetentionSettings;
  readonly telemetry: TelemetrySettings;
  /** Most simultaneous fetches of the process. */
  readonly upstreamRequests: number;
  /** Processes that serve the same addresses. */
  readonly workers: number;
  readonly supervisor: SupervisorSettings;
  readonly imageFetch: ImageFetchSettings;
  readonly routing: RoutingSettings;
  readonly overload: OverloadSettings;
  readonly idempotency: IdempotencySettings;
  readonly hooks: {
    /** Header that tags calls, in lower case; undefined: none does. */
    readonly callTagHeader: string | undefined;
  };
  readonly environments: readonly ConfiguredEnvironment[];
  /** By name. */
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
  /** By name. */
  readonly pools: ReadonlyMap<string, Pool>;
  /** By name. */
  readonly plans: ReadonlyMap<string, Plan>;
}

export interface StorageSettings {
  readonly backend: "sqlite";
  /** A file, or `:memory:`. */
  readonly path: string;
}

export interface LimitSettings {
  readonly store: "memory";
  readonly defaultOutputTokens: number;
}

export interface HttpSettings {
  readonly bodyLimitBytes: number;
  readonly decompressedLimitBytes: number;
  readonly decompressionRatio: number;
  readonly jsonDepth: number;
  readonly jsonValues: number;
  readonly bodyMemoryBytes: number;
  readonly bodyMemoryPerKeyBytes: number;
  readonly bodyMemoryWaitMs: number;
  readonly bodyMemoryQueue: number;
  readonly maxHeaders: number;
  readonly bodyTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** CIDR blocks of proxies whose `x-forwarded-for` is believed. */
  readonly trustedProxies: readonly string[];
  /** Origins as browsers write them, or `*`. */
  readonly allowedOrigins: readonly string[];
}

export interface StreamSettings {
  readonly keepAliveIntervalMs: number;
  readonly keepAlive: ConfigFile["streams"]["keep_alive"];
  readonly holdHeadersMs: number;
  readonly writeTimeoutMs: number;
  readonly malformedEvent: ConfigFile["streams"]["malformed_event"];
  readonly usageTimeoutMs: number;
}

export interface LedgerSettings {
  readonly batchRows: number;
  readonly flushIntervalMs: number;
  readonly queueRows: number;
  readonly sync: ConfigFile["ledger"]["sync"];
  readonly spoolLimitBytes: number;
  readonly segmentBytes: number;
}

export interface AdminSettings {
  /** Without a slash at its end; undefined: that of the listener. */
  readonly publicUrl: string | undefined;
  /** At which the listener answers beside those that it has anyway; see `createHostList`. */
  readonly hosts: readonly string[];
  readonly bootstrapToken: Secret | undefined;
  readonly sessionIdleMs: number;
  readonly sessionAbsoluteMs: number;
  readonly requestsPerMinute: number;
  readonly signInsPerMinute: number;
  readonly leakReports: LeakReportSettings;
  readonly sso: SsoSettings | undefined;
}

/** Reports of secret scanners; without keys there are no signed ones. */
export interface LeakReportSettings {
  readonly publicKeysUrl: string | undefined;
  /** PEM, by the identifier of the key. */
  readonly publicKeys: Readonly<Record<string, string>>;
  /** Whether what is reported is ended at once. */
  readonly revoke: boolean;
}

export interface AuditSettings {
  readonly checkpointIntervalMs: number;
  readonly checkpointFile: string | undefined;
}

/** Single sign-on with OpenID Connect. */
export interface SsoSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Secret | undefined;
  readonly scopes: readonly string[];
  readonly roleClaim: string;
  /** By a value of the claim. */
  readonly roles: Readonly<Record<string, Role>>;
  readonly accountClaim: string;
  /** Whether an auditor without the account claim sees all accounts; else it stays outside. */
  readonly auditorsSeeAll: boolean;
}

export interface SupervisorSettings {
  /** Whether a worker is started ahead, to take the place of one that ends. */
  readonly hasStandby: boolean;
}

export interface TelemetrySettings {
  readonly logLevel: ConfigFile["telemetry"]["log_level"];
  readonly logFormat: ConfigFile["telemetry"]["log_format"];
  /** Whether the words of upstreams, which may quote prompts, are logged. */
  /** Most of the log that waits for its reader. */
  readonly logBufferBytes: number;
  readonly logsUpstreamMessages: boolean;
}

export interface ConfiguredEnvironment extends Environment {
  /** Lower case, without port; `*` stands for every host that no environment names. */
  readonly hosts: readonly string[];
}

/** What one configured upstream needs, told apart by its kind. */
export type UpstreamSettings = OpenaiUpstreamSettings | BedrockUpstreamSettings;

/** What upstreams of every kind have. */
export interface SharedUpstreamSettings {
  readonly name: string;
  readonly timeouts: Timeouts;
  readonly maxInFlight: number;
  /** Undefined: an answer whose caller has left is aborted. */
  readonly drain: DrainSettings | undefined;
}

export interface BedrockUpstreamSettings extends SharedUpstreamSettings, BedrockSettings {
  readonly kind: "bedrock";
}

type OpenaiFile = Extract<ConfigFile["upstreams"][string], { kind: "openai" }>;

export interface OpenaiUpstreamSettings extends SharedUpstreamSettings {
  readonly kind: "openai";
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly apiKey: Secret | undefined;
  readonly apiKeyHeader: OpenaiFile["api_key_header"];
  /** Names in lower case. Values may be secret: print the names only. */
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly forwardFields: readonly string[];
  readonly dropFields: readonly string[];
  readonly maxTokensField: OpenaiFile["max_tokens_field"];
  readonly instructionRole: OpenaiFile["instruction_role"];
  readonly flattenTextParts: boolean;
  readonly streamUsage: boolean;
  readonly takesTokenIds: boolean;
  readonly embeddingBatchLimit: number;
  readonly embeddingEncoding: OpenaiFile["embedding_encoding"];
}
