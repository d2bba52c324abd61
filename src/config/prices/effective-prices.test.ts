import { describe, expect, test } from "bun:test";
import { parseConfig, formatProblems } from "../load.ts";
import { costOf } from "../../domain/money/cost.ts";
import type { TargetPrice } from "../../domain/money/price.ts";
import { effectivePrices, priceNotices } from "./effective-prices.ts";

const now = Date.parse("2026-11-28T12:00:00Z");

function configOf(file: object) {
  const result = parseConfig(JSON.stringify(file), { name: "sluice.yaml", env: {} });
  if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
  return result.config;
}

interface Written {
  readonly upstream: object;
  readonly model: string;
  readonly target?: object;
  readonly prices?: readonly object[];
}

function fileOf({ upstream, model, target = {}, prices = [] }: Written) {
  const family = model.startsWith("arn:") ? { bedrock: { family: "claude-4" } } : {};
  return {
    environments: [{ name: "production", hosts: ["*"], models: ["*"] }],
    upstreams: { main: upstream },
    models: {
      "chat-a": {
        kind: /embed/.test(model) ? "embedding" : "chat",
        context_window: 200_000,
        targets: [{ upstream: "main", model, ...family, ...target }],
      },
    },
    prices,
  };
}

/** The price of the only target. */
function priced(written: Written, at = now): TargetPrice | undefined {
  return [...effectivePrices(configOf(fileOf(written)), at).values()][0];
}

const bedrock = { kind: "bedrock", region: "eu-central-1", api_key: "a-key" };
const at = (url: string) => ({ kind: "openai", base_url: url });
const anthropic = { kind: "anthropic", api_key: "sk-ant-api03-test" };

const input = (written: Written) => priced(written)?.price.input;

describe("the shipped list", () => {
  const bedrockModels: readonly (readonly [string, number | undefined])[] = [
    ["global.anthropic.claude-sonnet-5-5", 2_000_000],
    ["us.anthropic.claude-sonnet-5-5", 2_200_000],
    ["jp.anthropic.claude-sonnet-5-5", 2_200_000],
    // In the region itself it costs as much as in its geography.
    ["anthropic.claude-sonnet-5-5", 2_200_000],
    ["us.anthropic.claude-3-5-sonnet-20241022-v2:0", 3_000_000],
    ["anthropic.claude-3-5-sonnet-20241022-v2:0", 3_000_000],
    ["anthropic.claude-3-5-sonnet-20241022-v2:0:200k", 3_000_000],
    ["eu.amazon.nova-lite-v1:0", 78_000],
    ["us.amazon.nova-lite-v1:0", 60_000],
    ["amazon.nova-lite-v1:0", 78_000],
    // Known only for two geographies, which differ.
    ["apac.amazon.nova-lite-v1:0", undefined],
    ["us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0", undefined],
    ["amazon.titan-embed-text-v2:0", 20_000],
    // A version that the list does not have may cost something else.
    ["mistral.mistral-large-2402-v2:0", undefined],
    ["mistral.mistral-large", undefined],
    [
      "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/us.anthropic.claude-opus-5",
      5_500_000,
    ],
    [
      "arn:aws:bedrock:eu-central-1::foundation-model/anthropic.claude-3-opus-20240229-v1:0",
      15_000_000,
    ],
    ["arn:aws:bedrock:eu-central-1:123456789012:provisioned-model/abcdef123456", undefined],
  ];
  test.each(bedrockModels)("of Bedrock: %s", (model, expected) => {
    expect(input({ upstream: bedrock, model })).toBe(expected);
  });

  test("says that a price of one region is not sure to be that of another", () => {
    const model = "mistral.mixtral-8x7b-instruct-v0:1";
    const price = { input: 450_000, output: 700_000 };
    const source = "litellm 1.110.2, genai-prices 0.2.3";
    const inUs = { ...bedrock, region: "us-west-2" };
    const known = { price, source, confidence: "high" as const };
    expect(priced({ upstream: inUs, model })).toEqual(known);
    expect(priced({ upstream: bedrock, model })).toEqual({
      price,
      source: `${source}, of us`,
      confidence: "low",
    });
  });

  test("has no prices of other partitions", () => {
    const model = "anthropic.claude-sonnet-4-5-20250929-v1:0";
    const gov = { ...bedrock, region: "us-gov-west-1" };
    expect(input({ upstream: gov, model })).toBeUndefined();
    expect(input({ upstream: { ...bedrock, region: "us-east-1" }, model })).toBe(3_300_000);
  });

  test("prices an application inference profile as the model behind it", () => {
    const arn =
      "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abcdef123456";
    const written = {
      upstream: bedrock,
      model: "eu.anthropic.claude-opus-5",
      target: { bedrock: { profiles: { production: arn } } },
    };
    const prices = effectivePrices(configOf(fileOf(written)), now);
    expect([...prices].map(([id, price]) => [id, price?.price.input])).toEqual([
      [`main/${arn}`, 5_500_000],
    ]);
  });

  const others: readonly (readonly [string, object, string, number | undefined])[] = [
    ["OpenAI", at("https://api.openai.com/v1"), "gpt-5.4", 2_500_000],
    ["a dated name", at("https://api.openai.com/v1"), "gpt-4o-2024-08-06", 2_500_000],
    ["an embedding model", at("https://api.openai.com/v1"), "text-embedding-3-small", 20_000],
    ["an unknown model", at("https://api.openai.com/v1"), "gpt-4o-audio-preview", undefined],
    ["a fine-tuned model", at("https://api.openai.com/v1"), "ft:gpt-4o:acme::x", undefined],
    ["another host", at("http://127.0.0.1:8000/v1"), "gpt-5.4", undefined],
    ["a host that looks alike", at("https://api.openai.com.example.com/v1"), "gpt-5.4", undefined],
    ["Anthropic", anthropic, "claude-sonnet-4-5-20250929", 3_000_000],
    ["Anthropic's short name", anthropic, "claude-haiku-5-5", 100_000],
    ["Anthropic's latest", anthropic, "claude-3-5-sonnet-latest", 3_000_000],
    [
      "Bedrock's mantle",
      at("https://bedrock-mantle.us-east-1.api.aws/v1"),
      "openai.gpt-oss-120b",
      150_000,
    ],
    [
      "Claude at the mantle",
      { ...anthropic, base_url: "https://bedrock-mantle.eu-west-1.api.aws/anthropic" },
      "anthropic.claude-haiku-4-5",
      1_100_000,
    ],
    [
      "Bedrock's chat endpoint",
      at("https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1"),
      "openai.gpt-oss-20b-1:0",
      70_000,
    ],
  ];
  test.each(others)("of %s", (_name, upstream, model, expected) => {
    expect(input({ upstream, model })).toBe(expected);
  });

  test("keeps source, confidence and date, and prices the reference's calls", () => {
    const found = priced({ upstream: bedrock, model: "global.anthropic.claude-sonnet-5-5" });
    expect(found).toMatchObject({
      source: "litellm 1.110.2, genai-prices 0.2.3",
      confidence: "high",
      since: "2026-10-07",
    });
    const cost = (model: string, used: object, tier?: string) => {
      const { price = {} } = priced({ upstream: bedrock, model }) ?? {};
      const none = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 };
      return costOf({ ...none, ...used }, price, tier);
    };
    const mixed = {
      inputTokens: 12_000,
      cachedInputTokens: 9_000,
      cacheWriteTokens: 1_000,
      outputTokens: 500,
    };
    expect(cost("global.anthropic.claude-sonnet-5-5", mixed)).toBe(12_400_000);
    expect(cost("us.anthropic.claude-sonnet-5-5", mixed)).toBe(13_640_000);
    const hour = { inputTokens: 9_634, cacheWriteTokens: 9_634, cacheWrite1hTokens: 9_634 };
    expect(cost("global.anthropic.claude-opus-4-8", hour)).toBe(96_340_000);
    const long = { inputTokens: 100_000, outputTokens: 100 };
    expect(cost("global.anthropic.claude-haiku-5-5", long)).toBe(10_050_000);
    const longer = { ...long, inputTokens: 100_001 };
    expect(cost("global.anthropic.claude-haiku-5-5", longer)).toBe(50_250_500);
    const thousand = { inputTokens: 1_000, outputTokens: 1_000 };
    expect(cost("openai.gpt-oss-120b-1:0", thousand, "priority")).toBe(1_312_500);
  });
});

describe("the configuration", () => {
  const model = "us.anthropic.claude-sonnet-5-5";
  const entry = { provider: "bedrock", model: "anthropic.claude-sonnet-5-5" };

  test("a target's own price precedes the section, and the section the shipped list", () => {
    const prices = [{ ...entry, input: 1.5, source: "contract" }];
    const target = { price: { input: "0.000001", output: 0 } };
    expect(priced({ upstream: bedrock, model, prices })).toEqual({
      price: { input: 1_500_000 },
      source: "contract",
      confidence: "configured",
    });
    expect(priced({ upstream: bedrock, model, prices, target })?.price).toEqual({
      input: 1,
      output: 0,
    });
  });

  test("the most exact scope of the section applies", () => {
    const prices = [
      { ...entry, input: 1 },
      { ...entry, scope: "us", input: 2 },
      { ...entry, scope: "regional", input: 3 },
    ];
    expect(input({ upstream: bedrock, model, prices })).toBe(2_000_000);
    const elsewhere = { upstream: bedrock, prices };
    expect(input({ ...elsewhere, model: "eu.anthropic.claude-sonnet-5-5" })).toBe(3_000_000);
    expect(input({ ...elsewhere, model: "global.anthropic.claude-sonnet-5-5" })).toBe(1_000_000);
  });

  test("prices of a server of one's own are found by its host", () => {
    const prices = [{ provider: "vllm.internal", model: "llama-3", input: 0.1, output: 0.2 }];
    const upstream = at("http://vllm.internal:8000/v1");
    expect(priced({ upstream, model: "llama-3", prices })?.price).toEqual({
      input: 100_000,
      output: 200_000,
    });
  });

  test("a price begins on its day", () => {
    const prices = [
      { ...entry, input: 1 },
      { ...entry, input: 2, valid_from: "2026-12-01" },
      { ...entry, input: 3, valid_from: "2027-01-01" },
    ];
    const written = { upstream: bedrock, model, prices };
    const first = Date.parse("2026-12-01T00:00:00Z");
    const days = [now, first - 1, first, Date.parse("2027-06-01T00:00:00Z")];
    expect(days.map((day) => priced(written, day)?.price.input)).toEqual([
      1_000_000, 1_000_000, 2_000_000, 3_000_000,
    ]);
  });

  test("reads long prompts and tiers", () => {
    const price = {
      input: 3,
      output: 15,
      long_prompt: { over_tokens: 200_000, input: 6, output: 22.5 },
      tiers: { priority: { input: 6, long_prompt: { over_tokens: 10, input: 7 } } },
    };
    expect(priced({ upstream: bedrock, model, target: { price } })?.price).toEqual({
      input: 3_000_000,
      output: 15_000_000,
      long_prompt: { over_tokens: 200_000, input: 6_000_000, output: 22_500_000 },
      tiers: { priority: { input: 6_000_000, long_prompt: { over_tokens: 10, input: 7_000_000 } } },
    });
  });

  test("a price that lacks what calls may be billed is told, and what nobody is billed is not missed", () => {
    const lacking = (upstream: object, target: object, called = "gpt-x") =>
      priceNotices(configOf(fileOf({ upstream, model: called, target })), now);
    const vllm = at("http://vllm.internal:8000/v1");
    const [notice, ...others] = lacking(vllm, { price: { input: 1, output: 2 } });
    expect(notice).toStartWith(
      "not priced: main/gpt-x (cache_read); calls that are billed for that",
    );
    expect(others).toEqual([]);
    expect(lacking(vllm, { price: { input: 1, cache_read: 0, output: 2 } })).toEqual([]);
    expect(lacking(vllm, {})).toHaveLength(1);
    const claude = { price: { input: 1, output: 2 } };
    const caching = { ...claude, bedrock: { prompt_cache: "auto" } };
    expect(lacking(bedrock, claude, model)).toEqual([]);
    expect(lacking(bedrock, caching, model)[0]).toContain("(cache_read, cache_write)");
    expect(lacking(anthropic, claude, "claude-sonnet-4-6")).toEqual([]);
    const other = { ...anthropic, base_url: "http://claude.internal" };
    expect(lacking(other, claude, "claude-sonnet-4-6")[0]).toContain("(cache_read)");
    expect(lacking(vllm, { price: { input: 1 } }, "text-embedding-x")).toEqual([]);
  });

  const wrong: readonly (readonly [object, string])[] = [
    [{ ...entry, input: -1 }, "prices[0].input: must be USD from 0 to 10000"],
    [{ ...entry, input: "3,00" }, "prices[0].input: must be USD"],
    [{ ...entry, input: 0.000_000_1 }, "at most six digits after the point"],
    [{ ...entry, input: 10_000.01 }, "prices[0].input: must be USD from 0 to 10000"],
    [{ ...entry }, "prices[0]: must have at least one price, such as input"],
    [{ ...entry, input: 1, valid_from: "2026-02-30" }, "must be a date that exists"],
    [{ ...entry, inputs: 1 }, "did you mean 'input'?"],
    [{ model: "x", input: 1 }, "prices[0].provider"],
  ];
  test.each(wrong)("refuses %j", (written, problem) => {
    const file = fileOf({ upstream: bedrock, model, prices: [written] });
    const result = parseConfig(JSON.stringify(file), { name: "sluice.yaml", env: {} });
    expect(result.ok ? "no problems" : formatProblems("sluice.yaml", result.problems)).toContain(
      problem,
    );
  });

  const form = "such as { input: 0.2, cache_read: 0.1, output: 0.6 }";
  test.each<readonly [unknown, string]>([
    [0.2, form],
    ["0.20", form],
    [[0.2, 0.6], form],
    [{}, form],
    [{ input: 0.2, cached: 0.1 }, "price.cached: unknown key; did you mean 'cache_read'?"],
    [{ prompt: 0.2, output: 0.6 }, "price.prompt: unknown key; did you mean 'input'?"],
    [{ input: 0.2, completion: 0.6 }, "price.completion: unknown key; did you mean 'output'?"],
  ])("says how to write a price where a target has %j", (price, problem) => {
    const file = fileOf({ upstream: bedrock, model, target: { price } });
    const result = parseConfig(JSON.stringify(file), { name: "sluice.yaml", env: {} });
    expect(result.ok ? "no problems" : formatProblems("sluice.yaml", result.problems)).toContain(
      problem,
    );
  });

  test("refuses an entry twice, and two prices of one target", () => {
    const twice = fileOf({
      upstream: bedrock,
      model,
      prices: [entry, entry].map((each) => ({ ...each, input: 1 })),
    });
    const file = fileOf({ upstream: bedrock, model, target: { price: { input: 1 } } });
    const other = { ...file.models["chat-a"], targets: [{ upstream: "main", model }] };
    const differing = { ...file, models: { ...file.models, "chat-b": other } };
    const problemsOf = (written: object) => {
      const result = parseConfig(JSON.stringify(written), { name: "sluice.yaml", env: {} });
      return result.ok ? "no problems" : formatProblems("sluice.yaml", result.problems);
    };
    expect(problemsOf(twice)).toContain("repeats prices[0]");
    expect(problemsOf(differing)).toContain(
      "models.chat-b.targets[0]: has the same upstream and model as models.chat-a.targets[0] and " +
        "another price: let both have the same one",
    );
  });
});
