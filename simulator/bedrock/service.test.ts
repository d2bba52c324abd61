import { expect, test } from "bun:test";
import { Quota, type QuotaOptions } from "./service.ts";

function quotaAt(models: NonNullable<QuotaOptions["models"]>) {
  const time = { nowMs: 1000 };
  const quota = new Quota({ models }, { now: () => 0, monotonic: () => time.nowMs });
  return { quota, time };
}

const tooMany = (what: string) => ({
  name: "ThrottlingException",
  status: 429,
  message: `Too many ${what}, please wait before trying again.`,
});

test("requests above the limit are throttled until the next minute", () => {
  const { quota, time } = quotaAt({ m: { requestsPerMinute: 6 } });
  for (let call = 0; call < 6; call++) expect(quota.refusal("m", 2)).toBeUndefined();
  time.nowMs += 59_999;
  expect(quota.refusal("m", 2)).toMatchObject(tooMany("requests"));
  time.nowMs += 1;
  expect(quota.refusal("m", 2)).toBeUndefined();
});

test("tokens above the limit are throttled, and a refused call takes nothing", () => {
  const { quota } = quotaAt({ m: { requestsPerMinute: 1, tokensPerMinute: 1000 } });
  expect(quota.refusal("m", 1001)).toMatchObject(tooMany("tokens"));
  expect(quota.refusal("m", 1000)).toBeUndefined();
});

test("a model may not be ready for its first calls; others have no limits", () => {
  const { quota } = quotaAt({ m: { notReadyCalls: 2 } });
  const refusal = { name: "ModelNotReadyException", status: 429 };
  expect(quota.refusal("m", 2)).toMatchObject(refusal);
  expect(quota.refusal("m", 2)).toMatchObject(refusal);
  expect(quota.refusal("m", 2)).toBeUndefined();
  for (let call = 0; call < 100; call++) expect(quota.refusal("other", 1e9)).toBeUndefined();
});
