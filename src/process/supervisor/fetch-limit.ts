import type { FetchLimitOwner, ProcessEnvironment } from "../../config/environment.ts";

/** Limit until a worker has read the configuration: the default of `upstream_requests`. */
export const usualFetchLimit = 8192;

/**
 * Whether this process has the limit that the configuration wants. A limit set by the operator only
 * has to be high enough; one set by the supervisor must match.
 */
export function hasFetchLimit(wanted: number, environment: ProcessEnvironment): boolean {
  const { maxHttpRequests = 0, fetchLimitOwner } = environment;
  return fetchLimitOwner === "supervisor" ? maxHttpRequests === wanted : maxHttpRequests >= wanted;
}

/** Environment variables of a new worker; `chosen` is the limit that an earlier one asked for. */
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
