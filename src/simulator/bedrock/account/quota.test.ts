import { expect, test } from "bun:test";

import { BedrockError } from "../bedrock-error.ts";
import { Quota, type Admission, type QuotaOptions } from "./quota.ts";

function quotaAt(options: QuotaOptions) {
  const time = { nowMs: 1000 };
  const quota = new Quota(options, {
    now: () => 0,
    monotonic: () => time.nowMs,
    schedule: () => () => undefined,
  });
  return { quota, time };
}

function admitted(result: Admission | BedrockError): Admission {
  if (result instanceof BedrockError) throw result;
  return result;
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

test("requests beyond the minute's number are throttled until one has come back", () => {
  const { quota, time } = quotaAt({ requestsPerMinute: 6 });
  for (let call = 0; call < 6; call++) admitted(quota.acquire("m", 1, 1));
  expect(quota.acquire("m", 1, 1)).toMatchObject(tooManyRequests);
  time.nowMs += 9_999;
  expect(quota.acquire("m", 1, 1)).toMatchObject(tooManyRequests);
  time.nowMs += 1;
  admitted(quota.acquire("m", 1, 1));
  expect(quota.acquire("m", 1, 1)).toMatchObject(tooManyRequests);
});

test("an idle hour saves up no more than a minute's worth", () => {
  const { quota, time } = quotaAt({ requestsPerMinute: 2 });
  time.nowMs += 3_600_000;
  admitted(quota.acquire("m", 1, 1));
  admitted(quota.acquire("m", 1, 1));
  expect(quota.acquire("m", 1, 1)).toMatchObject(tooManyRequests);
});

test("a call reserves its input and all that it may write", () => {
  const { quota } = quotaAt({ tokensPerMinute: 1000 });
  expect(quota.acquire("m", 1, 1000)).toMatchObject(tooManyTokens);
  expect(admitted(quota.acquire("m", 100, 900))).toEqual({ model: "m", reservedTokens: 1000 });
  expect(quota.acquire("m", 0, 1)).toMatchObject(tooManyTokens);
});

test("a refused call takes nothing, neither of requests nor of tokens", () => {
  const { quota } = quotaAt({ requestsPerMinute: 1, tokensPerMinute: 1000 });
  expect(quota.acquire("m", 600, 600)).toMatchObject(tooManyTokens);
  admitted(quota.acquire("m", 100, 900));
});

test("what was reserved in vain comes back when the call has ended", () => {
  const { quota } = quotaAt({ tokensPerMinute: 1000 });
  const admission = admitted(quota.acquire("m", 100, 900));
  quota.settle(admission, { inputTokens: 100, outputTokens: 50, burndown: 1 });
  expect(quota.acquire("m", 851, 0)).toMatchObject(tooManyTokens);
  admitted(quota.acquire("m", 850, 0));
});

test("output that burns down five times as fast can cost more than was reserved", () => {
  const { quota, time } = quotaAt({ tokensPerMinute: 1000 });
  const admission = admitted(quota.acquire("m", 100, 300));
  quota.settle(admission, { inputTokens: 100, outputTokens: 300, burndown: 5 });
  // 1000 - 100 - 1500 leaves a debt of 600: 36 seconds until it is paid.
  time.nowMs += 36_000;
  expect(quota.acquire("m", 1, 0)).toMatchObject(tooManyTokens);
  time.nowMs += 60;
  admitted(quota.acquire("m", 1, 0));
});

test("each model has buckets of its own, and may have limits of its own", () => {
  const { quota } = quotaAt({ requestsPerMinute: 1, models: { big: { requestsPerMinute: 2 } } });
  admitted(quota.acquire("a", 1, 1));
  expect(quota.acquire("a", 1, 1)).toMatchObject(tooManyRequests);
  admitted(quota.acquire("b", 1, 1));
  admitted(quota.acquire("big", 1, 1));
  admitted(quota.acquire("big", 1, 1));
  expect(quota.acquire("big", 1, 1)).toMatchObject(tooManyRequests);
});

test("a provisioned model is not ready for its first calls; others are", () => {
  const { quota } = quotaAt({ notReadyCalls: 2 });
  const arn = "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abcdefghijkl";
  const refusal = { name: "ModelNotReadyException", status: 429 };
  expect(quota.acquire(arn, 1, 1)).toMatchObject(refusal);
  expect(quota.acquire(arn, 1, 1)).toMatchObject(refusal);
  admitted(quota.acquire(arn, 1, 1));
  admitted(quota.acquire("anthropic.claude-3-haiku-20240307-v1:0", 1, 1));
});

test("without limits everything is let through", () => {
  const { quota } = quotaAt({});
  for (let call = 0; call < 100; call++) admitted(quota.acquire("m", 1e9, 1e9));
});
