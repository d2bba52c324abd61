import { describe, expect, test } from "bun:test";
import { formatProblems, parseConfig } from "../../../config/load.ts";
import { checkWarnings, configWarnings } from "../../../config/problems/warnings.ts";

const now = Date.parse("2026-11-23T12:00:00Z");

/** Warnings in the check of a file whose one alias has this target. */
function warningsFor(
  target: string,
  limit = "max_output_tokens: 4096,",
  warningsOf = checkWarnings,
): readonly string[] {
  const text = `
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { aws: { kind: bedrock, region: us-east-1 } }
models:
  chat-a: { kind: chat, context_window: 1000000, ${limit} targets: [{ upstream: aws, ${target} }] }
`;
  const result = parseConfig(text, { name: "sluice.yaml", env: {} });
  if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
  return warningsOf(result.config, now);
}

const long = "max_output_tokens: 128000,";
const account = "arn:aws:bedrock:us-east-1:123456789012";

describe("the end of a model's life", () => {
  test("is a warning for a model that has ended, behind any profile or ARN", () => {
    for (const model of [
      "us.anthropic.claude-3-5-haiku-20241022-v1:0",
      "anthropic.claude-3-5-haiku-20241022-v1:0:200k",
      `${account}:inference-profile/us.anthropic.claude-3-5-haiku-20241022-v1:0`,
      "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-5-haiku-20241022-v1:0",
    ]) {
      const [warning, ...others] = warningsFor(
        `model: "${model}", bedrock: { family: claude-3-5-haiku }`,
      );
      expect(warning).toStartWith("models.chat-a: ");
      expect(warning).toContain("reached its end of life on 2026-06-19");
      expect(warning).toContain("https://docs.aws.amazon.com/");
      expect(others).toEqual([]);
    }
  });

  test("is a warning within 90 days, and not before", () => {
    const opus = warningsFor(
      "model: us.anthropic.claude-opus-4-1-20250805-v1:0",
      "max_output_tokens: 32000,",
    );
    expect(opus).toEqual([expect.stringContaining("reaches its end of life on 2027-01-08")]);
    const sonnet = "model: us.anthropic.claude-sonnet-4-5-20250929-v1:0";
    expect(warningsFor(sonnet, "max_output_tokens: 64000,")).toEqual([]);
  });

  test("is unknown behind an ARN that names no model", () => {
    const target = `model: "${account}:provisioned-model/abc", bedrock: { family: claude-3 }`;
    expect(warningsFor(target)).toEqual([]);
  });
});

describe("a model in several regions, or behind profiles", () => {
  const warningsOf = (model: string, family = ""): readonly string[] => {
    const arn = (region: string): string =>
      `arn:aws:bedrock:${region}:111122223333:application-inference-profile/p`;
    const text = `
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams: { aws: { kind: bedrock, regions: [us-east-1, eu-west-1] } }
models:
  chat-a:
    kind: chat
    context_window: 1000000
    max_output_tokens: 200000
    targets:
      - upstream: aws
        model: ${model}
        bedrock: { ${family} profiles: { production: ["${arn("us-east-1")}", "${arn("eu-west-1")}"] } }
`;
    const result = parseConfig(text, { name: "sluice.yaml", env: {} });
    if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
    return checkWarnings(result.config, now);
  };

  test("causes one warning, with the name in the file", () => {
    expect(warningsOf("us.anthropic.claude-3-5-haiku-20241022-v1:0")).toEqual([
      expect.stringContaining(
        "us.anthropic.claude-3-5-haiku-20241022-v1:0 reached its end of life",
      ),
      expect.stringContaining("but us.anthropic.claude-3-5-haiku-20241022-v1:0 writes at most"),
    ]);
    expect(warningsOf("us.acme.chat-1")).toEqual([
      expect.stringContaining("unknown model us.acme.chat-1"),
    ]);
  });
});

describe("an unknown model", () => {
  test("is a warning until the operator configures it", () => {
    expect(warningsFor("model: acme.chat-1")).toEqual([
      expect.stringContaining("unknown model acme.chat-1"),
    ]);
    const told = "model: acme.chat-1, bedrock: { capabilities: { max_output_tokens: 4096 } }";
    expect(warningsFor(told)).toEqual([]);
    expect(warningsFor("model: acme.chat-1, bedrock: { family: other-chat }")).toEqual([]);
  });
});

describe("a misspelt model", () => {
  test.each([
    ["us.antropic.claude-sonnet-4-6", "us.anthropic.claude-sonnet-4-6"],
    ["claude-sonnet-4-6", "anthropic.claude-sonnet-4-6"],
    ["eu.anthropic.claude-sonnet-4.6", "eu.anthropic.claude-sonnet-4-6"],
    ["mistral.mixtral-8x7-instruct-v0:1", "mistral.mixtral-8x7b-instruct-v0:1"],
  ])("%s is probably %s", (written, meant) => {
    expect(warningsFor(`model: "${written}"`)[0]).toContain(`Did you mean '${meant}'?`);
  });

  test("is not suspected in another one, known or unknown", () => {
    for (const model of [
      "us.acme.chat-1",
      "anthropic.claude-opus-6",
      "amazon.nova-lite-v1:0:300k",
    ]) {
      expect(warningsFor(`model: "${model}"`).join()).not.toContain("Did you mean");
    }
  });
});

describe("max_output_tokens", () => {
  test("above what the model writes is a warning with its source", () => {
    const [warning, ...others] = warningsFor("model: us.meta.llama3-3-70b-instruct-v1:0", long);
    expect(warning).toContain("models.chat-a.max_output_tokens is 128000, but");
    expect(warning).toContain("writes at most 4096");
    expect(warning).toContain("read 2026-11-23");
    expect(others).toEqual([]);
  });

  test("above the operator's setting of the model is a warning too", () => {
    const target =
      "model: us.anthropic.claude-opus-4-6-v1, bedrock: { capabilities: { max_output_tokens: 9000 } }";
    expect(warningsFor(target, long)).toEqual([
      expect.stringContaining("at most 9000 (bedrock.capabilities.max_output_tokens)"),
    ]);
  });

  test("far below what the model writes is a warning, and a chosen lower one is not", () => {
    const opus = "model: us.anthropic.claude-opus-4-6-v1";
    expect(warningsFor(opus, "max_output_tokens: 15000,")).toEqual([
      expect.stringContaining("max_output_tokens is 15000, though"),
    ]);
    expect(warningsFor(opus, "max_output_tokens: 16000,")).toEqual([]);
    expect(warningsFor(opus, long)).toEqual([]);
  });

  test("cites a page about all models of the family, not the card of another one", () => {
    const [warning] = warningsFor("model: us.anthropic.claude-sonnet-4-6", "");
    expect(warning).toContain("(https://platform.claude.com/docs/en/models/, read 2026-11-23)");
  });

  test("that is not set is a warning if the model writes more", () => {
    expect(warningsFor("model: us.anthropic.claude-opus-4-6-v1", "")).toEqual([
      expect.stringContaining("is not set, so it is 4096, though"),
    ]);
    expect(warningsFor("model: us.meta.llama3-3-70b-instruct-v1:0", "")).toEqual([]);
  });
});

test("at the start only models that will fail are warned about: the rest may be intended", () => {
  const limit = "max_output_tokens: 200000,";
  const haiku = "model: us.anthropic.claude-3-5-haiku-20241022-v1:0";
  expect(warningsFor(haiku, limit)).toHaveLength(2);
  expect(warningsFor(haiku, limit, configWarnings)).toEqual([
    expect.stringContaining("reached its end of life"),
  ]);
  expect(warningsFor("model: acme.chat-1", limit, configWarnings)).toEqual([]);
});
