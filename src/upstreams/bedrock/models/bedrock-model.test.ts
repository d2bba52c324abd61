import { expect, test } from "bun:test";
import { bedrockModelOf } from "./bedrock-model.ts";
import { modelWith } from "../../../../test/bedrock/checked-encode.ts";
import { knownFamilies } from "./facts.ts";

const families: readonly (readonly [string, string])[] = [
  ["anthropic.claude-3-haiku-20240307-v1:0", "claude-3"],
  ["us.anthropic.claude-3-5-haiku-20241022-v1:0", "claude-3-5-haiku"],
  ["us.anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5"],
  ["apac.anthropic.claude-3-5-sonnet-20240620-v1:0", "claude-3"],
  ["eu.anthropic.claude-3-7-sonnet-20250219-v1:0", "claude-4"],
  ["us-gov.anthropic.claude-sonnet-4-20250514-v1:0", "claude-4"],
  ["us.anthropic.claude-opus-4-1-20250805-v1:0", "claude-opus-4"],
  ["jp.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-4-5"],
  ["au.anthropic.claude-sonnet-4-6", "claude-4-6"],
  ["global.anthropic.claude-sonnet-4-20250514-v1:0", "claude-4"],
  ["global.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-4-5"],
  ["global.cohere.embed-v4:0", "cohere-embed-v4"],
  ["global.anthropic.claude-opus-4-6-v1", "claude-4-6"],
  ["ca.anthropic.claude-opus-4-7", "claude-4-7"],
  ["global.anthropic.claude-opus-4-8", "claude-4-7"],
  ["us.anthropic.claude-sonnet-5-20260601-v1:0", "claude-5"],
  ["global.anthropic.claude-opus-5", "claude-5"],
  ["us.anthropic.claude-haiku-5-5", "claude-haiku-5-5"],
  ["us.anthropic.claude-sonnet-5-5", "claude-sonnet-5-5"],
  ["us.anthropic.claude-opus-5-5-20260922-v1:0", "claude-opus-5-5"],
  ["us.anthropic.claude-fable-5-1", "claude-opus-5-5"],
  ["us.anthropic.claude-opus-6", "claude-opus-5-5"],
  ["meta.llama3-70b-instruct-v1:0", "llama-3"],
  ["meta.llama3-1-405b-instruct-v1:0", "llama-3-1"],
  ["us.meta.llama3-1-70b-instruct-v1:0", "llama-3-1"],
  ["us.meta.llama3-3-70b-instruct-v1:0", "llama-3-1"],
  ["us.meta.llama3-2-90b-instruct-v1:0", "llama-3-2-vision"],
  ["us.meta.llama3-2-3b-instruct-v1:0", "llama-3"],
  ["us.meta.llama4-scout-17b-instruct-v1:0", "llama-4"],
  ["mistral.mistral-7b-instruct-v0:2", "mistral-7b"],
  ["mistral.mixtral-8x7b-instruct-v0:1", "mixtral-8x7b"],
  ["mistral.mistral-large-2407-v1:0", "mistral-large"],
  ["us.amazon.nova-lite-v1:0", "nova"],
  ["amazon.nova-micro-v1:0", "nova-micro"],
  ["in.amazon.nova-2-lite-v1:0", "nova-2"],
  ["amazon.titan-text-express-v1", "titan-text"],
  ["amazon.titan-embed-text-v2:0", "titan-embed-v2"],
  ["cohere.command-r-plus-v1:0", "cohere-command-r"],
  ["cohere.embed-english-v3", "cohere-embed-v3"],
  ["cohere.embed-multilingual-v3", "cohere-embed-v3"],
  ["us.cohere.embed-v4:0", "cohere-embed-v4"],
  ["us.deepseek.r1-v1:0", "deepseek-r1"],
  ["openai.gpt-oss-20b-1:0", "gpt-oss"],
];

for (const [identifier, family] of families) {
  test(`${identifier} is of the family ${family}`, () => {
    expect(knownFamilies.familyOf(identifier)).toBe(family);
  });
}

test("an ARN has no family, even if it names a model", () => {
  const arn = "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0";
  expect(knownFamilies.familyOf(arn)).toBeUndefined();
  expect(bedrockModelOf(arn, undefined).family).toBe("other-chat");
  expect(modelWith(arn, { family: "claude-3" }).capabilities.maxOutputTokens).toBe(4_096);
});

test("a profile's ARN has its model's family, unless the operator names another", () => {
  const arn = "arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/abc";
  const baseModel = "us.anthropic.claude-haiku-4-5-20251001-v1:0";
  expect(modelWith(arn, { baseModel }).family).toBe("claude-4-5");
  expect(modelWith(arn, { baseModel, family: "nova" }).family).toBe("nova");
  expect(modelWith("us.amazon.nova-lite-v1:0", { baseModel }).family).toBe("nova");
});

test("unknown models and regions have no family", () => {
  for (const identifier of ["acme.chat-1", "xx.anthropic.claude-3-haiku-20240307-v1:0", ""]) {
    expect(knownFamilies.familyOf(identifier)).toBeUndefined();
  }
});

test("the operator's capabilities override the family's", () => {
  const model = modelWith("mistral.mixtral-8x7b-instruct-v0:1", {
    capabilities: { system: true, maxOutputTokens: 512 },
  });
  expect(model.capabilities).toMatchObject({ system: true, maxOutputTokens: 512, tools: false });
});

test("the operator's family overrides the identifier's", () => {
  const model = modelWith("us.amazon.nova-lite-v1:0", { family: "llama-4" });
  expect(model.family).toBe("llama-4");
  expect(model.capabilities.streamingTools).toBe(false);
});

test("a target without settings has the usual ones", () => {
  expect(bedrockModelOf("amazon.titan-embed-text-v2:0", undefined)).toMatchObject({
    family: "titan-embed-v2",
    settings: { dropUnsupported: false, additionalFields: {}, truncate: "none" },
  });
});
