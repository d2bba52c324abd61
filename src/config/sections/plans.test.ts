import { expect, test } from "bun:test";
import { parse } from "yaml";
import { formatProblems, parseConfig } from "../load.ts";
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
    "standard",
    "token_weights: { cached_input: 0, cache_write: 1.25, output: '0.1' }",
    { tokenWeights: { cachedInput: 0, cacheWrite: 125, output: 10 } },
  ],
  [
    "standard",
    "token_weights: { output: 4.35 }",
    { tokenWeights: { cachedInput: 100, cacheWrite: 100, output: 435 } },
  ],
  [
    "enterprise",
    "token_weights: bedrock",
    { tokenWeights: { cachedInput: 0, cacheWrite: 100, output: "by-model" } },
  ],
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

test.each([
  [
    "standard: { token_weights: { output: 1.255 } }",
    "plans.standard.token_weights.output: must be",
  ],
  ["standard: { token_weights: { output: -1 } }", "plans.standard.token_weights.output: must be"],
  [
    "standard: { token_weights: { output: 100.01 } }",
    "plans.standard.token_weights.output: must be",
  ],
  ["standard: { token_weights: { output: 1e2 } }", undefined],
  ["standard: { token_weights: { output: 1e-3 } }", "plans.standard.token_weights.output: must be"],
  [
    "standard: { token_weights: { output: .nan } }",
    "plans.standard.token_weights: must be bedrock, or",
  ],
  ["standard: { token_weights: { outputs: 1 } }", "did you mean 'output'"],
  ["standard: { token_weights: bedrok }", "must be bedrock, or a map of cached_input"],
  ["standard: { token_weights: 5 }", "must be bedrock, or a map of cached_input"],
])("says what is wrong with %s", (written, expected) => {
  const text = `environments: [{ name: a, hosts: ["*"], models: ["*"] }]
upstreams: { up: { kind: openai, base_url: "http://127.0.0.1:1/v1" } }
models: { m: { kind: chat, context_window: 1000, targets: [{ upstream: up, model: m }] } }
plans: { ${written} }`;
  const result = parseConfig(text, { name: "test", env: {} });
  const told = result.ok ? undefined : formatProblems("test", result.problems);
  if (expected === undefined) expect(told).toBeUndefined();
  else expect(told).toContain(expected);
});
