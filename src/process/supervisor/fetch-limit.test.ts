import { expect, test } from "bun:test";
import { readEnvironment } from "../../config/environment.ts";
import { configFileSchema } from "../../config/schema.ts";
import { hasFetchLimit, usualFetchLimit, workerVariables } from "./fetch-limit.ts";
import { upstreamKinds } from "../../upstreams/kinds.ts";

const base = { ...readEnvironment(), maxHttpRequests: undefined, variables: { HOME: "/h" } };

test("a worker gets the operator's limit, the default, or the one it asked for", () => {
  expect(workerVariables(undefined, base)).toEqual({
    HOME: "/h",
    SLUICE_WORKER: "1",
    SLUICE_FETCH_LIMIT_BY: "supervisor",
    BUN_CONFIG_MAX_HTTP_REQUESTS: "8192",
  });
  const variables = { BUN_CONFIG_MAX_HTTP_REQUESTS: "9000" };
  const set = { ...base, maxHttpRequests: 9000, variables };
  expect(workerVariables(undefined, set)).toEqual({
    ...variables,
    SLUICE_WORKER: "1",
    SLUICE_FETCH_LIMIT_BY: "operator",
  });
  expect(workerVariables(20_000, set)).toEqual({
    SLUICE_WORKER: "1",
    SLUICE_FETCH_LIMIT_BY: "supervisor",
    BUN_CONFIG_MAX_HTTP_REQUESTS: "20000",
  });
});

test.each([
  ["supervisor", 8192, 8192, true],
  ["supervisor", 8192, 100, false],
  ["supervisor", 8192, 10_000, false],
  ["operator", 9000, 8192, true],
  ["operator", 100, 8192, false],
  [undefined, 9000, 8192, true],
  [undefined, undefined, 8192, false],
] as const)("a limit that %p set to %p where %p is wanted: right is %p", (...one) => {
  const [fetchLimitOwner, maxHttpRequests, wanted, isRight] = one;
  expect(hasFetchLimit(wanted, { ...base, fetchLimitOwner, maxHttpRequests })).toBe(isRight);
});

test("a worker with default settings starts with the right limit the first time", () => {
  const initial: unknown = configFileSchema(upstreamKinds).shape.upstream_requests.parse(undefined);
  expect(initial).toBe(usualFetchLimit);
});
