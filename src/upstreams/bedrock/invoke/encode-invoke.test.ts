import { expect, test } from "bun:test";
import type { ChatRequest } from "../../../domain/chat/chat.ts";
import { resolveModel } from "../models/bedrock-model.ts";
import { type ImportedFamily, importedWireOf } from "../models/model-families.ts";
import { defaultModelSettings, type BedrockModelSettings } from "../settings.ts";
import { encodeInvoke } from "./encode-invoke.ts";

const arn = "arn:aws:bedrock:us-east-1:111122223333:imported-model/abcdefghijkl";

function encode(
  family: ImportedFamily,
  request: Partial<ChatRequest>,
  settings: Partial<BedrockModelSettings> = {},
) {
  const wire = importedWireOf(family);
  if (wire === undefined) throw new Error(`${family} is not imported`);
  const model = resolveModel(arn, { ...defaultModelSettings, family, ...settings });
  const messages = [{ role: "user", content: "Hi" }] as const;
  const { body, headers, context } = encodeInvoke(
    { model: "m", messages, ...request },
    model,
    wire,
  );
  const { prompt: _, ...fields } = JSON.parse(body) as Record<string, unknown>;
  return { fields, headers, context };
}

const asked = { max_tokens: 9, temperature: 0.5, top_p: 0.4, top_k: 7 };

test.each([
  ["imported-llama", {}, { max_gen_len: 9 }],
  ["imported-qwen", { stop: "x" }, { max_gen_len: 9, stop: ["x"] }],
  ["imported-mistral", { stop: ["x", "y"] }, { max_tokens: 9, stop: ["x", "y"] }],
] as const)("%s is asked in its own words", (family, request, fields) => {
  expect(encode(family, { ...asked, ...request }).fields).toEqual({
    temperature: 0.5,
    top_p: 0.4,
    top_k: 7,
    ...fields,
  });
});

test("the cap is the alias' by default, and the operator's fields take precedence", () => {
  const settings = { maxOutputTokens: 500, additionalFields: { top_p: 0.1, seed: 3, prompt: "p" } };
  expect(encode("imported-llama", { top_p: 0.9 }, settings).fields).toEqual({
    max_gen_len: 500,
    top_p: 0.1,
    seed: 3,
  });
});

test("fields of Converse's body become headers", () => {
  const settings: Partial<BedrockModelSettings> = {
    guardrail: { identifier: "g", version: "1", trace: "enabled_full", streamProcessing: "sync" },
    requestMetadata: { team: "search\u2003two" },
    serviceTier: "flex",
    latency: "optimized",
  };
  expect(encode("imported-qwen", {}, settings).headers).toEqual({
    "x-amzn-bedrock-guardrailidentifier": "g",
    "x-amzn-bedrock-guardrailversion": "1",
    "x-amzn-bedrock-trace": "ENABLED_FULL",
    "x-amzn-bedrock-request-metadata": '{"team":"search\\u2003two"}',
    "x-amzn-bedrock-service-tier": "flex",
    "x-amzn-bedrock-performanceconfig-latency": "optimized",
  });
  expect(encode("imported-qwen", {}).headers).toEqual({});
});

test("fields that a prompt cannot express are refused with any settings", () => {
  const settings = { capabilities: { tools: true, jsonSchema: true, images: true } };
  const tools = [{ type: "function", function: { name: "f" } }] as const;
  expect(() => encode("imported-qwen", { tools }, settings)).toThrow("tools");
  const schema = { type: "json_schema", json_schema: { name: "n", schema: {} } } as const;
  expect(() => encode("imported-qwen", { response_format: schema }, settings)).toThrow("schema");
});

test("answers are validated only if the operator configured it", () => {
  const request = { response_format: { type: "json_object" } } as const;
  const check = (validateAnswers: boolean) =>
    encode("imported-qwen", request, { validateAnswers }).context.check;
  expect(check(true)).toBeDefined();
  expect(check(false)).toBeUndefined();
});
