import type { ProcessEnvironment } from "../../config/environment.ts";
import { hasFetchLimit } from "../../process/supervisor/fetch-limit.ts";

/**
 * Replaces the process once, under the same id, with the limit of simultaneous fetches in its
 * environment: the runtime reads the limit (256 by default) only at start.
 */
export function restartWithFetchLimit(wanted: number, environment: ProcessEnvironment): void {
  if (hasFetchLimit(wanted, environment)) return;
  // On systems without the call the operator sets the variable.
  if (process.execve === undefined) return;
  const defined: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment.variables)) {
    if (value !== undefined) defined[name] = value;
  }
  process.execve(
    process.execPath,
    [process.execPath, ...process.execArgv, ...process.argv.slice(1)],
    { ...defined, BUN_CONFIG_MAX_HTTP_REQUESTS: String(wanted) },
  );
}
