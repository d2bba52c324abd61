import type { FetchLimitOwner, ProcessEnvironment } from "../../config/environment.ts";

/** Of a worker whose configuration nobody has read yet: the default of `upstream_requests`. */
export const usualFetchLimit = 8192;

/**
 * Whether this process has the limit that the configuration wants. One that the operator set only
 * has to be high enough; the supervisor's own guess must be right.
 */
export function hasFetchLimit(wanted: number, environment: ProcessEnvironment): boolean {
  const { maxHttpRequests = 0, fetchLimitOwner } = environment;
  return fetchLimitOwner === "supervisor" ? maxHttpRequests === wanted : maxHttpRequests >= wanted;
}

/** The variables that start a worker; `chosen` is the limit that one before it asked for. */
export function workerVariables(
  chosen: number | undefined,
  { maxHttpRequests, variables }: ProcessEnvironment,
): Readonly<Record<string, string | undefined>> {
  if (chosen === undefined && maxHttpRequests !== undefined) return worker("operator", variables);
  const limit = { BUN_CONFIG_MAX_HTTP_REQUESTS: String(chosen ?? usualFetchLimit) };
  return worker("supervisor", { ...variables, ...limit });
}

function worker(owner: FetchLimitOwner, variables: ProcessEnvironment["variables"]) {
  return { ...variables, SLUICE_WORKER: "1", SLUICE_FETCH_LIMIT_BY: owner };
}
