import { expect, test } from "bun:test";
import { parse } from "yaml";
import { plansSchema } from "./plans.ts";

const standard = {
  limits: { requestsPerMinute: 300, tokensPerMinute: 500_000 },
  provisioned: false,
  responsesKeepMs: 3_600_000,
};

test.each([
  ["standard", "responses: { keep: 0s }", { ...standard, responsesKeepMs: 0 }],
  [
    "standard",
    "requests_per_minute: 7",
    { ...standard, limits: { requestsPerMinute: 7, tokensPerMinute: 500_000 } },
  ],
  ["standard", "custom: true", { ...standard, limits: undefined }],
  ["standard", "custom: 'true'", { ...standard, limits: undefined }],
  ["standard", "custom: false", standard],
  ["pro", "idempotency: true", { provisioned: true, isIdempotent: true }],
  ["pro", "provisioned: false", { provisioned: false }],
  ["enterprise", "queue_timeout: 1s", { limits: undefined, provisioned: true }],
  [
    "enterprise",
    "requests_per_minute: 1, tokens_per_minute: 2",
    { limits: { requestsPerMinute: 1, tokensPerMinute: 2 }, provisioned: true },
  ],
])("keeps what the file does not write of the plan %s with %s", (name, written, expected) => {
  const plans = plansSchema.parse(parse(`{ ${name}: { ${written} } }`));
  expect(plans.get(name)).toMatchObject(expected);
  expect([...plans.keys()]).toEqual(["pilot", "standard", "pro", "enterprise"]);
});
