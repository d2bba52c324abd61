import { expect, test } from "bun:test";
import { callOf, modelOf } from "../../../test/support/pipeline-fixtures.ts";
import type { GatewayError } from "../../domain/errors/gateway-error.ts";
import { busyError } from "./busy-error.ts";
import type { BusyPool, BusyReason } from "./place.ts";

function errorOf(values: Partial<BusyPool> & { busy: BusyReason }): GatewayError {
  const busy = { retryAfterMs: 1_500, position: undefined, waitedMs: 0, ...values };
  return busyError(busy, { call: callOf(), model: modelOf() });
}

test.each([
  ["full", "pool_busy"],
  ["tokens", "pool_busy"],
  ["queue-full", "queue_full"],
  ["deadline", "queue_deadline"],
] as const)("a pool that is busy (%s) is 503 with a time to come back: %s", (busy, rule) => {
  const error = errorOf({ busy });
  expect(error).toMatchObject({ status: 503, code: "model_unavailable", type: "server_error" });
  expect(error.headers).toEqual({ "retry-after": "2", "retry-after-ms": "1500" });
  expect(error.explanation).toMatchObject({ rule, keyId: "key_a", model: "alpha-sonnet-4" });
});

test("a call that waited gets its position and wait", () => {
  const { headers } = errorOf({ busy: "deadline", position: 7, waitedMs: 2_000.4 });
  expect(headers).toMatchObject({
    "x-sluice-queue-position": "7",
    "x-sluice-queue-wait-ms": "2000",
  });
});

test("a call that can never have a place gets no time to retry, and the reason", () => {
  const large = errorOf({ busy: "tokens", retryAfterMs: Infinity });
  expect(large.headers).toEqual({ "x-should-retry": "false" });
  expect(large.message).toContain("of this size does not fit");
  const stranger = errorOf({ busy: "full", retryAfterMs: Infinity });
  expect(stranger.message).toContain("only calls within provisioned throughput");
});

test("a caller that left the queue ends as any caller that left", () => {
  expect(errorOf({ busy: "left" })).toMatchObject({ status: 499, code: "caller_left" });
});
