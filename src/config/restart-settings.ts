import { isSameValue } from "../domain/json-object.ts";
import type { Config } from "./config.ts";

export interface ReloadedConfig {
  readonly config: Config;
  /** Changed settings that take effect after a restart. */
  readonly pending: readonly string[];
}

/** The next configuration with the current values of settings that are fixed at start. */
export function keepRestartSettings(current: Config, next: Config): ReloadedConfig {
  const fixed = Object.fromEntries(restartSettings.map(([field]) => [field, current[field]]));
  const config: Config = {
    ...next,
    ...fixed,
    http: { ...next.http, idleTimeoutMs: current.http.idleTimeoutMs },
    telemetry: { ...current.telemetry, otlp: next.telemetry.otlp },
  };
  const pending = restartSettings.filter(([field]) => !isSameValue(config[field], next[field]));
  return { config, pending: pending.map(([, key]) => key) };
}

/** Fields with settings that are fixed at start, and their names in the file. */
const restartSettings: readonly (readonly [keyof Config, string])[] = [
  ["listen", "listen"],
  ["storage", "storage"],
  ["dataDir", "data_dir"],
  ["upstreamRequests", "upstream_requests"],
  ["processes", "processes"],
  ["limits", "limits"],
  ["http", "http.idle_timeout"],
  ["ledger", "ledger"],
  ["retention", "retention"],
  ["admin", "admin"],
  ["audit", "audit"],
  ["telemetry", "telemetry"],
  ["auth", "auth"],
];

/** Whether a setting, named as in `formatPath`, takes effect only after a restart. */
export function needsRestart(key: string): boolean {
  if (key.startsWith("telemetry.otlp.")) return false;
  return restartSettings.some(([, name]) => key === name || key.startsWith(`${name}.`));
}
