import { expect, test } from "bun:test";
import { pricesSchema } from "../sections/prices.ts";
import { convertPrices } from "./convert-prices.ts";

/** A model of the list; numbers are written as in it. */
const of = (provider: string, fields: string, mode = "chat") =>
  `{"litellm_provider": "${provider}", "mode": "${mode}", ${fields}}`;

function convert(models: Readonly<Record<string, string>>) {
  const list = Object.entries(models).map(([name, model]) => `"${name}": ${model}`);
  const { entries, unmapped } = convertPrices(`{${list.join(",")}}`);
  expect(pricesSchema.safeParse(entries).success).toBe(true);
  return { entries, unmapped: Object.fromEntries(unmapped) };
}

const rates = '"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05';

test("reads the decimals of the text, not the floats", () => {
  const fields =
    '"input_cost_per_token": 2.9999999999999997e-07, "output_cost_per_token": 0.00000125, ' +
    '"cache_read_input_token_cost": 3.5E-8, "cache_creation_input_token_cost": 3.75e-06, ' +
    '"cache_creation_input_token_cost_above_1hr": 6e-06';
  expect(convert({ "claude-x": of("anthropic", fields) }).entries).toEqual([
    {
      provider: "anthropic",
      model: "claude-x",
      input: "0.3",
      cache_read: "0.035",
      cache_write: "3.75",
      cache_write_1h: "6",
      output: "1.25",
    },
  ]);
});

test("keeps long prompts and tiers apart, and leaves out what Sluice does not use", () => {
  const fields =
    `${rates}, "input_cost_per_token_above_272k_tokens": 6e-06, ` +
    '"output_cost_per_token_above_272k_tokens": 2.25e-05, ' +
    '"cache_creation_input_token_cost_above_1hr_above_272k_tokens": 1.2e-05, ' +
    '"input_cost_per_token_priority": 6e-06, "output_cost_per_token_priority": 3e-05, ' +
    '"input_cost_per_token_above_272k_tokens_flex": 3e-06, "input_cost_per_token_batches": 1e-06, ' +
    '"input_cost_per_image": 0.0048, "search_context_cost_per_query": {"high": 0.01}';
  expect(convert({ "gpt-x": of("openai", fields) }).entries).toEqual([
    {
      provider: "openai",
      model: "gpt-x",
      input: "3",
      output: "15",
      long_prompt: { over_tokens: 272_000, input: "6", cache_write_1h: "12", output: "22.5" },
      tiers: {
        priority: { input: "6", output: "30" },
        flex: { long_prompt: { over_tokens: 272_000, input: "3" } },
      },
    },
  ]);
});

test("reads scopes of Bedrock, and does not take the global price for that of a region", () => {
  const dearer = '"input_cost_per_token": 3.3e-06, "output_cost_per_token": 1.65e-05';
  const models = {
    "anthropic.claude-x": of("bedrock_converse", rates),
    "us.anthropic.claude-x": of("bedrock_converse", dearer),
    "bedrock/eu-west-1/anthropic.claude-x": of("bedrock", dearer),
    "amazon.nova-x": of("bedrock", rates),
    "us.amazon.nova-x": of("bedrock", rates),
    "bedrock/eu-west-1/1-month-commitment/amazon.nova-x": of("bedrock", rates),
  };
  const { entries, unmapped } = convert(models);
  expect(entries.map(({ model, scope, input }) => [model, scope, input])).toEqual([
    ["anthropic.claude-x", "global", "3"],
    ["anthropic.claude-x", "us", "3.3"],
    ["anthropic.claude-x", "eu-west-1", "3.3"],
    ["amazon.nova-x", undefined, "3"],
    ["amazon.nova-x", "us", "3"],
  ]);
  expect(unmapped).toEqual({
    "of commitments and fine-tuned models": ["bedrock/eu-west-1/1-month-commitment/amazon.nova-x"],
  });
});

test("names what it leaves out, and takes no price of 0 for one", () => {
  const none = '"input_cost_per_token": 0.0, "output_cost_per_token": 0.0';
  const models = {
    sample_spec: of("openai", rates),
    "gemini-x": of("vertex_ai", rates),
    "dall-e": of("openai", rates, "image_generation"),
    "gpt-free": of("openai", none),
    "openai/gpt-y": of("openai", rates),
    "gpt-y": of("openai", rates),
    "embed-x": of("openai", '"input_cost_per_token": 2e-08', "embedding"),
  };
  const { entries, unmapped } = convert(models);
  expect(entries.map(({ model }) => model)).toEqual(["gpt-y", "embed-x"]);
  expect(unmapped).toEqual({
    "of other providers": ["gemini-x"],
    "of other modes than chat and embedding": ["dall-e"],
    "without a price per token": ["gpt-free"],
    "named a second time": ["gpt-y"],
  });
  expect(() => convertPrices("prices: []")).toThrow(SyntaxError);
});
