import type { RetentionSettings } from "../domain/accounts/retention.ts";
import type { IdempotencySettings } from "../domain/idempotency-settings.ts";
import type { Secret } from "../domain/keys/secret.ts";
import type { Pool } from "../domain/limits/capacity.ts";
import type { Plan } from "../domain/limits/plan.ts";
import type { OverloadSettings, RoutingSettings } from "../domain/routing-settings.ts";
import type { ImageFetchSettings } from "../domain/upstream-settings.ts";
import type { ListenAddress } from "../settings/values.ts";
import type { AdminSettings, AuditSettings } from "./sections/admin.ts";
import type { ConfiguredEnvironment } from "./sections/environments.ts";
import type { HttpSettings } from "./sections/http.ts";
import type { SupervisorSettings, TelemetrySettings } from "./sections/process.ts";
import type {
  LedgerSettings,
  LimitSettings,
  StorageSettings,
  StreamSettings,
} from "./sections/server.ts";
import type { UpstreamSettings } from "./sections/upstreams.ts";

export type { ListenAddress } from "../settings/values.ts";
export type { AdminSettings, SsoSettings } from "./sections/admin.ts";
export type { UpstreamSettings } from "./sections/upstreams.ts";

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
