import type { ProcessEnvironment } from "../../config/environment.ts";
import { hasFetchLimit } from "../../process/supervisor/fetch-limit.ts";

/**
 * The runtime reads its limit of simultaneous fetches (256 by default) from the environment when
 * the process starts. So the process replaces itself, once, with the limit set; its id stays.
 */
export function restartWithFetchLimit(wanted: number, environment: ProcessEnvironment): void {
  if (hasFetchLimit(wanted, environment)) return;
  // Absent on systems without the call; there the operator sets the variable.
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
