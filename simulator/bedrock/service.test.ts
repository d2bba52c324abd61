import { expect, test } from "bun:test";
import { Quota, type QuotaOptions } from "./service.ts";

function quotaAt(options: QuotaOptions) {
  const time = { nowMs: 1000 };
  const quota = new Quota(options, {
    now: () => 0,
    monotonic: () => time.nowMs,
  });
  return { quota, time };
}

const tooManyRequests = {
  name: "ThrottlingException",
  status: 429,
  message: "Too many requests, please wait before trying again.",
};
const tooManyTokens = {
  name: "ThrottlingException",
  status: 429,
  message: "Too many tokens, please wait before trying again.",
};

test("requests above the limit are throttled until the bucket has refilled", () => {
  const { quota, time } = quotaAt({ requestsPerMinute: 6 });
  for (let call = 0; call < 6; call++) expect(quota.refusal("m", 2)).toBeUndefined();
  expect(quota.refusal("m", 2)).toMatchObject(tooManyRequests);
  time.nowMs += 9_999;
  expect(quota.refusal("m", 2)).toMatchObject(tooManyRequests);
  time.nowMs += 1;
  expect(quota.refusal("m", 2)).toBeUndefined();
  expect(quota.refusal("m", 2)).toMatchObject(tooManyRequests);
});

test("a bucket holds at most a minute's worth, even after an idle hour", () => {
  const { quota, time } = quotaAt({ requestsPerMinute: 2 });
  time.nowMs += 3_600_000;
  expect(quota.refusal("m", 2)).toBeUndefined();
  expect(quota.refusal("m", 2)).toBeUndefined();
  expect(quota.refusal("m", 2)).toMatchObject(tooManyRequests);
});

test("tokens above the limit are throttled", () => {
  const { quota } = quotaAt({ tokensPerMinute: 1000 });
  expect(quota.refusal("m", 1001)).toMatchObject(tooManyTokens);
  expect(quota.refusal("m", 1000)).toBeUndefined();
  expect(quota.refusal("m", 1)).toMatchObject(tooManyTokens);
});

test("a refused call takes neither requests nor tokens", () => {
  const { quota } = quotaAt({ requestsPerMinute: 1, tokensPerMinute: 1000 });
  expect(quota.refusal("m", 1200)).toMatchObject(tooManyTokens);
  expect(quota.refusal("m", 1000)).toBeUndefined();
});

test("each model has its own buckets and may have its own limits", () => {
  const { quota } = quotaAt({ requestsPerMinute: 1, models: { big: { requestsPerMinute: 2 } } });
  expect(quota.refusal("a", 2)).toBeUndefined();
  expect(quota.refusal("a", 2)).toMatchObject(tooManyRequests);
  expect(quota.refusal("b", 2)).toBeUndefined();
  expect(quota.refusal("big", 2)).toBeUndefined();
  expect(quota.refusal("big", 2)).toBeUndefined();
  expect(quota.refusal("big", 2)).toMatchObject(tooManyRequests);
});

test("a provisioned model is not ready for its first calls; others are", () => {
  const { quota } = quotaAt({ notReadyCalls: 2 });
  const arn = "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abcdefghijkl";
  const refusal = { name: "ModelNotReadyException", status: 429 };
  expect(quota.refusal(arn, 2)).toMatchObject(refusal);
  expect(quota.refusal(arn, 2)).toMatchObject(refusal);
  expect(quota.refusal(arn, 2)).toBeUndefined();
  expect(quota.refusal("anthropic.claude-3-haiku-20240307-v1:0", 2)).toBeUndefined();
});

test("without limits every call is admitted", () => {
  const { quota } = quotaAt({});
  for (let call = 0; call < 100; call++) expect(quota.refusal("m", 1e9)).toBeUndefined();
});
