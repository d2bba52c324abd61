import { describe, expect, test } from "bun:test";
import { ModelRegistry } from "./models.ts";

const registry = new ModelRegistry({ models: {}, region: undefined });
const account = "arn:aws:bedrock:us-west-2:123456789012";

describe("a model identifier", () => {
  test.each([
    [
      "anthropic.claude-3-haiku-20240307-v1:0",
      { maxOutputTokens: 4096, topPWithTemperature: true },
    ],
    ["us.anthropic.claude-3-7-sonnet-20250219-v1:0", { maxOutputTokens: 64_000 }],
    ["eu.anthropic.claude-sonnet-4-20250514-v1:0", { topPWithTemperature: true }],
    ["us.anthropic.claude-haiku-4-5-20251001-v1:0", { topPWithTemperature: false, prefill: true }],
    ["us.anthropic.claude-sonnet-4-6", { prefill: false, temperature: true }],
    ["global.anthropic.claude-opus-4-7", { temperature: false }],
    ["meta.llama3-8b-instruct-v1:0", { tools: false, contextTokens: 8192 }],
    ["meta.llama3-1-405b-instruct-v1:0", { tools: true, streamTools: false, stop: false }],
    ["us.meta.llama3-3-70b-instruct-v1:0", { streamTools: false, maxOutputTokens: 4096 }],
    ["mistral.mixtral-8x7b-instruct-v0:1", { system: false, defaultMaxTokens: 512 }],
    ["mistral.mistral-large-2407-v1:0", { system: true, hasShortToolIds: true }],
    ["amazon.nova-pro-v1:0", { images: true, api: "chat" }],
    ["amazon.titan-embed-text-v2:0", { api: "titan-embed" }],
    ["cohere.embed-multilingual-v3", { api: "cohere-embed-v3" }],
    ["us.cohere.embed-v4:0", { api: "cohere-embed-v4" }],
    ["simulated-anything", { api: "everything" }],
    [
      "arn:aws:bedrock:us-west-2::foundation-model/amazon.nova-pro-v1:0",
      { maxOutputTokens: 10_000 },
    ],
    [`${account}:inference-profile/us.anthropic.claude-sonnet-4-6`, { prefill: false }],
    [`${account}:application-inference-profile/a1b2c3d4e5f6`, { api: "everything" }],
    [`${account}:provisioned-model/a1b2c3d4e5f6`, { api: "everything" }],
    [`${account}:custom-model/meta.llama3/a1b2c3d4e5f6`, { api: "everything" }],
  ] as const)("%s has its row", (model, row) => {
    expect(registry.resolve(model)).toMatchObject(row);
  });

  test.each([
    ["gpt-4o", "The provided model identifier is invalid."],
    ["us.mistral.mixtral-8x7b-instruct-v0:1", "The provided model identifier is invalid."],
    [
      "arn:aws:bedrock:us-west-2::foundation-model/some.thing",
      "The provided model identifier is invalid.",
    ],
    [
      "anthropic.claude-sonnet-4-6",
      "Invocation of model ID anthropic.claude-sonnet-4-6 with on-demand throughput isn’t " +
        "supported. Retry your request with the ID or ARN of an inference profile that contains " +
        "this model.",
    ],
    ["anthropic.claude-v2", /end of its life/],
    ["model with spaces", /^1 validation error detected: Value 'model with spaces' at 'modelId' /],
    ["arn:aws:bedrock:us-west-2:1:provisioned-model/x", /must satisfy regular expression pattern/],
    ["a".repeat(2049), /Member must have length less than or equal to 2048/],
  ])("%s is refused", (model, message) => {
    expect(() => registry.resolve(model)).toThrow(message);
  });

  test("of a profile is known only in the profile's regions", () => {
    const inFrankfurt = new ModelRegistry({ models: {}, region: "eu-central-1" });
    const resolve = (prefix: string) => () =>
      inFrankfurt.resolve(`${prefix}.anthropic.claude-sonnet-4-6`);
    expect(resolve("eu")).not.toThrow();
    expect(resolve("global")).not.toThrow();
    expect(resolve("us")).toThrow("The provided model identifier is invalid.");
  });

  test("is refused after the model's end of life if a date is set", () => {
    const at = (date: string) =>
      new ModelRegistry({ models: {}, region: undefined, modelsAsOf: Date.parse(date) });
    const sonnet = "us.anthropic.claude-sonnet-4-20250514-v1:0";
    expect(at("2026-10-13").resolve(sonnet).lifecycle).toBe("active");
    for (const model of [
      sonnet,
      "arn:aws:bedrock:us-west-2:123456789012:inference-profile/us.meta.llama3-1-405b-instruct-v1:0",
    ]) {
      expect(() => at("2026-10-14").resolve(model)).toThrow("reached the end of its life");
    }
    expect(at("2030-01-01").resolve("us.anthropic.claude-sonnet-4-6").lifecycle).toBe("active");
    expect(registry.resolve(sonnet).lifecycle).toBe("active");
  });

  test.each([
    ["ap-northeast-1", "jp.anthropic.claude-haiku-4-5-20251001-v1:0", true],
    ["ap-northeast-1", "apac.anthropic.claude-sonnet-4-20250514-v1:0", true],
    ["ap-northeast-1", "jp.anthropic.claude-sonnet-4-20250514-v1:0", false],
    ["ap-northeast-1", "au.anthropic.claude-haiku-4-5-20251001-v1:0", false],
    ["ap-northeast-2", "jp.anthropic.claude-haiku-4-5-20251001-v1:0", false],
    ["ap-southeast-2", "au.anthropic.claude-haiku-4-5-20251001-v1:0", true],
    ["ap-southeast-1", "au.anthropic.claude-haiku-4-5-20251001-v1:0", false],
    ["us-west-2", `${account}:provisioned-model/a1b2c3d4e5f6`, true],
    ["us-east-1", `${account}:provisioned-model/a1b2c3d4e5f6`, false],
    ["us-east-1", `${account}:application-inference-profile/a1b2c3d4e5f6`, false],
  ])("in %s: %s is known: %p", (region, model, isKnown) => {
    const registry = new ModelRegistry({ models: {}, region });
    const resolve = () => registry.resolve(model);
    if (isKnown) expect(resolve).not.toThrow();
    else expect(resolve).toThrow("The provided model identifier is invalid.");
  });

  test("may have an overridden row, also an ARN or an unknown one", () => {
    const arn = `${account}:provisioned-model/a1b2c3d4e5f6`;
    const overridden = new ModelRegistry({
      models: {
        [arn]: { tools: false },
        "amazon.nova-pro-v1:0": { lifecycle: "legacy" },
        "anthropic.claude-sonnet-4-6": { isProfileOnly: false },
        invented: { system: false },
      },
      region: undefined,
    });
    expect(overridden.resolve(arn)).toMatchObject({ tools: false, system: true });
    expect(overridden.resolve("anthropic.claude-sonnet-4-6").prefill).toBe(false);
    expect(overridden.resolve("invented").system).toBe(false);
    expect(() => overridden.resolve("amazon.nova-pro-v1:0")).toThrow(
      "marked by provider as Legacy",
    );
  });
});

describe("counting tokens", () => {
  test("supports foundation models, even profile-only ones", () => {
    expect(registry.resolveForCounting("anthropic.claude-sonnet-4-6").countTokens).toBe(true);
  });

  test.each([
    ["us.anthropic.claude-sonnet-4-6", "The provided model identifier is invalid."],
    [`${account}:provisioned-model/a1b2c3d4e5f6`, "The provided model identifier is invalid."],
    ["amazon.nova-pro-v1:0", "The provided model doesn't support counting tokens."],
  ])("refuses %s", (model, message) => {
    expect(() => registry.resolveForCounting(model)).toThrow(message);
  });
});
