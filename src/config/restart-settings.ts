import { isSameValue } from "../domain/json-object.ts";
import type { Config } from "./config.ts";

export interface ReloadedConfig {
  readonly config: Config;
  /** Changed settings that take effect after a restart. */
  readonly pending: readonly string[];
}

/** The next configuration with the current values of settings that are fixed at start. */
export function keepRestartSettings(current: Config, next: Config): ReloadedConfig {
  const pending = restartSettings
    .filter(({ read }) => !isSameValue(read(current), read(next)))
    .map(({ key }) => key);
  const config: Config = {
    ...next,
    listen: current.listen,
    storage: current.storage,
    dataDir: current.dataDir,
    upstreamRequests: current.upstreamRequests,
    processes: current.processes,
    limits: current.limits,
    http: { ...next.http, idleTimeoutMs: current.http.idleTimeoutMs },
    ledger: current.ledger,
    retention: current.retention,
    admin: current.admin,
    audit: current.audit,
    telemetry: { ...current.telemetry, otlp: next.telemetry.otlp },
    auth: current.auth,
  };
  return { config, pending };
}

interface RestartSetting {
  readonly key: string;
  readonly read: (config: Config) => unknown;
}

const restartSettings: readonly RestartSetting[] = [
  { key: "listen", read: (config) => config.listen },
  { key: "storage", read: (config) => config.storage },
  { key: "data_dir", read: (config) => config.dataDir },
  { key: "upstream_requests", read: (config) => config.upstreamRequests },
  { key: "processes", read: (config) => config.processes },
  { key: "limits", read: (config) => config.limits },
  { key: "http.idle_timeout", read: (config) => config.http.idleTimeoutMs },
  { key: "ledger", read: (config) => config.ledger },
  { key: "retention", read: (config) => config.retention },
  { key: "admin", read: (config) => config.admin },
  { key: "audit", read: (config) => config.audit },
  { key: "telemetry", read: ({ telemetry }) => ({ ...telemetry, otlp: undefined }) },
  { key: "auth.peppers", read: (config) => config.auth.peppers },
  { key: "auth.snapshot_max_age", read: (config) => config.auth.snapshotMaxAgeMs },
  { key: "auth.keep_snapshot", read: (config) => config.auth.keepsSnapshot },
];
