import { expect, test } from "bun:test";
import { formatProblems, parseConfig } from "../load.ts";

test("a model has the capabilities that all its targets have, unless the file says more", () => {
  const file = `
environments: [{ name: test, hosts: ["*"], models: ["*"] }]
upstreams:
  aws: { kind: bedrock, region: us-east-1 }
  claude: { kind: anthropic, api_key: k }
  local: { kind: openai, base_url: "http://b/v1" }
models:
  same: { kind: chat, context_window: 9000, targets: [
    { upstream: aws, model: us.anthropic.claude-sonnet-4-6 }, { upstream: claude, model: claude-sonnet-4-6 }] }
  less: { kind: chat, context_window: 9000, targets: [
    { upstream: aws, model: us.anthropic.claude-sonnet-4-6 },
    { upstream: aws, model: amazon.titan-text-express-v1, bedrock: { capabilities: { documents: false } } }] }
  unknown: { kind: chat, context_window: 9000, targets: [{ upstream: local, model: m }] }
  stated: { kind: chat, context_window: 9000, capabilities: { tools: true, images: false },
    targets: [{ upstream: local, model: m }] }
`;
  const result = parseConfig(file, { name: "file", env: {} });
  if (!result.ok) throw new Error(formatProblems("file", result.problems));
  const models = result.config.environments[0]?.models;
  const all = { tools: true, images: true, documents: true, reasoning: true, json_schema: true };
  expect(models?.get("same")?.capabilities).toEqual(all);
  expect(models?.get("less")?.capabilities).toEqual({
    tools: false,
    images: false,
    documents: false,
    reasoning: false,
    json_schema: false,
  });
  expect(models?.get("unknown")?.capabilities).toEqual({});
  expect(models?.get("stated")?.capabilities).toEqual({ tools: true, images: false });
});
