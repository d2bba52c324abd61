import { afterAll, beforeAll, expect, test } from "bun:test";
import { formatProblems, parseConfig } from "../../src/config/load.ts";
import { runHere } from "./run-here.ts";
import { createFolder, type SluiceFolder } from "./sluice-folder.ts";

let folder: SluiceFolder;
beforeAll(() => {
  folder = createFolder({ isOffline: true });
});
afterAll(() => folder[Symbol.dispose]());

const proxy = `
model_list:
  - model_name: chat
    litellm_params:
      model: bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0
      aws_region_name: us-west-2
      aws_access_key_id: os.environ/AWS_ACCESS_KEY_ID
      aws_secret_access_key: os.environ/AWS_SECRET_ACCESS_KEY
      rpm: 60
      max_retries: 2
    model_info: { mode: chat, max_input_tokens: 200000, max_output_tokens: 64000, input_cost_per_token: 0.1 }
  - model_name: chat
    litellm_params: { model: bedrock/converse/eu-west-1/eu.anthropic.claude-sonnet-4-20250514-v1:0, rpm: 30, order: 2 }
  - model_name: small
    litellm_params: { model: openai/tiny, api_base: "http://10.0.0.1:8000/v1", api_key: sk-in-the-file }
  - model_name: spare
    litellm_params: { model: gpt-x, api_key: os.environ/OPENAI_API_KEY }
  - model_name: local
    litellm_params: { model: ollama/llama, api_base: "http://10.0.0.2:11434" }
  - model_name: sky
    litellm_params: { model: azure/large, api_base: "https://sky.example.com/", api_key: os.environ/AZURE, api_version: "2025-01-01" }
  - model_name: vectors
    litellm_params: { model: hosted_vllm/bge-m3, api_base: "http://10.0.0.1:8000/v1", api_key: sk-in-the-file }
    model_info: { mode: embedding, max_tokens: 8192 }
  - model_name: "openai/*"
    litellm_params: { model: openai/* }
  - model_name: odd
    litellm_params: { model: sagemaker/command }
litellm_settings:
  drop_params: true
  fallbacks: [{ chat: [nobody] }]
router_settings:
  routing_strategy: least-busy
  fallbacks: [{ small: [spare] }, { chat: [small, nobody] }, { vectors: [chat] }]
general_settings: { master_key: sk-1234 }
environment_variables: { A: b }
`;

async function convert(text: string) {
  const path = await folder.write("litellm.yaml", text);
  const { exitCode, output, errors } = await runHere(["import", "litellm", path]);
  return { exitCode, output, notes: errors.trimEnd().split("\n") };
}

test("models, targets, credentials and fallbacks are carried over, and the result is valid", async () => {
  const { exitCode, output } = await convert(proxy);
  expect(exitCode).toBe(0);
  const names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "AZURE"];
  const env = Object.fromEntries(names.map((name) => [name, `value_of_${name}`]));
  const result = parseConfig(output, { name: "sluice.yaml", env });
  if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
  const models = result.config.environments[0]?.models;
  const shown = [...(models ?? [])].map(([alias, model]) => [
    alias,
    model.kind,
    model.contextWindow,
    model.targets.map(({ id, priority, weight }) => `${id} ${priority} ${weight}`).join(", "),
    (model.fallbacks ?? []).join(" "),
  ]);
  const claude = "anthropic.claude-sonnet-4-20250514-v1:0";
  expect(shown).toEqual([
    [
      "chat",
      "chat",
      200_000,
      `bedrock-us-west-2/us.${claude} 2 1, bedrock-eu-west-1/eu.${claude} 1 1`,
      "small spare",
    ],
    ["small", "chat", 128_000, "10-0-0-1/tiny 1 1", "spare"],
    ["spare", "chat", 128_000, "openai/gpt-x 1 1", ""],
    ["local", "chat", 128_000, "ollama/llama 1 1", ""],
    ["sky", "chat", 128_000, "azure-large/large 1 1", ""],
    ["vectors", "embedding", 8_192, "hosted-vllm/bge-m3 1 1", ""],
  ]);
  expect(output).toContain("access_key_id: ${AWS_ACCESS_KEY_ID}");
  expect(output).toContain("base_url: http://10.0.0.2:11434/v1");
  expect(output).toContain("base_url: https://sky.example.com/openai/deployments/large");
});

test("each setting without a counterpart is named, in the result too", async () => {
  const { output, notes } = await convert(proxy);
  const wildcard =
    "Left out, a wildcard; name each model that callers use: model_list[7] (openai/*).";
  const told = [
    "litellm_params.max_retries is not carried over; `routing.attempts` is for all models: chat.",
    "context_window is a guess: the file does not have it, so look it up: small (128000), " +
      "spare (128000), local (128000), sky (128000).",
    "A secret is in the file; better put it in a variable: upstreams.10-0-0-1, upstreams.hosted-vllm.",
    wildcard,
    "Fallbacks are left out, since nobody is no model of this file: chat -> nobody, vectors -> nobody.",
    "litellm_settings.fallbacks are not read, since router_settings has its own.",
    "Not carried over; calls are shared by weight among targets of one priority; failing and throttled ones " +
      "get none: router_settings.routing_strategy.",
    "Not carried over; set them where Sluice runs: environment_variables.",
    "docs/coming-from.md says what Sluice has instead.",
  ];
  for (const note of told) {
    expect(notes).toContain(note);
    expect(output).toContain(`# ${note}\n`);
  }
});

test("deployments of other modes are left out with the reason, told or known by the model", async () => {
  const { exitCode, output, notes } = await convert(`
model_list:
  - { model_name: chat, litellm_params: { model: openai/m, api_base: "http://10.0.0.1/v1" } }
  - { model_name: pictures, litellm_params: { model: openai/dall-e-3, api_key: os.environ/K } }
  - { model_name: order, litellm_params: { model: cohere/m, api_base: "http://10.0.0.1/v1" }, model_info: { mode: rerank } }
  - { model_name: ears, litellm_params: { model: openai/whisper-1, api_key: os.environ/K } }
  - { model_name: voice, litellm_params: { model: openai/tts-1, api_key: os.environ/K } }
  - { model_name: old, litellm_params: { model: openai/i, api_key: os.environ/K }, model_info: { mode: completion } }
  - { model_name: chat, litellm_params: { model: openai/e, api_base: "http://10.0.0.1/v1" }, model_info: { mode: Embedding } }
`);
  expect(exitCode).toBe(0);
  const why = (mode: string, place: string): string =>
    `Left out, its mode is ${mode}, and Sluice serves chat and embeddings: ${place}.`;
  for (const note of [
    why("image_generation", "model_list[1] (pictures)"),
    why("rerank", "model_list[2] (order)"),
    why("audio_transcription", "model_list[3] (ears)"),
    why("audio_speech", "model_list[4] (voice)"),
    why("completion", "model_list[5] (old)"),
    "Left out, chat has deployments of kind chat before: model_list[6] (chat).",
  ]) {
    expect(notes).toContain(note);
  }
  expect(output.match(/^ {2}\w+:$/gm)).toEqual(["  chat:"]);
});

test("fields that LiteLLM drops are dropped: what Bedrock lacks, and what a server is not sent", async () => {
  const { exitCode, output, notes } = await convert(`
model_list:
  - { model_name: cloud, litellm_params: { model: bedrock/anthropic.claude-sonnet-4-6 } }
  - { model_name: strict, litellm_params: { model: bedrock/amazon.nova-lite-v1:0, drop_params: false } }
  - model_name: local
    litellm_params: { model: openai/m, api_base: "http://10.0.0.1/v1", additional_drop_params: [user, seed] }
  - model_name: other
    litellm_params: { model: openai/n, api_base: "http://10.0.0.1/v1", additional_drop_params: ["tools[*].strict"] }
litellm_settings: { drop_params: "True" }
`);
  expect(exitCode).toBe(0);
  expect(output.match(/drop_unsupported: true/g)).toHaveLength(1);
  expect(output).toMatch(/drop_fields:\n {6}- user\n {6}- seed\n/);
  const told = notes.join("\n");
  expect(told).toContain("drop_params drops nothing at servers of kind openai");
  expect(told).toContain("litellm_params.additional_drop_params is not carried over");
  expect(told).not.toContain("litellm_settings.drop_params is not");
});

test("variables may stand for addresses and regions", async () => {
  const { exitCode, output, notes } = await convert(`
model_list:
  - model_name: chat
    litellm_params: { model: azure/large, api_base: os.environ/AZURE_BASE, api_key: os.environ/AZURE_KEY }
  - model_name: cloud
    litellm_params: { model: bedrock/anthropic.claude-v2, aws_region_name: os.environ/AWS_REGION }
  - model_name: server
    litellm_params: { model: hosted_vllm/llama, api_base: os.environ/VLLM_BASE }
`);
  expect([notes.filter((note) => note.includes("problem")), exitCode]).toEqual([[], 0]);
  expect(output).toContain("base_url: ${AZURE_BASE}/openai/deployments/large");
  expect(output).toContain("  bedrock-aws-region:\n    kind: bedrock\n    region: ${AWS_REGION}\n");
  const env = { AZURE_BASE: "https://a.example", AZURE_KEY: "k", AWS_REGION: "us-east-1" };
  const source = { name: "sluice.yaml", env: { ...env, VLLM_BASE: "http://10.0.0.1/v1" } };
  expect(parseConfig(output, source).ok).toBe(true);
});

test("a deployment that is listed twice is one target, and its repetition is named", async () => {
  const deployment =
    '{ model_name: chat, litellm_params: { model: openai/m, api_base: "http://10.0.0.1/v1" } }';
  const { exitCode, output, notes } = await convert(
    `model_list:\n  - ${deployment}\n  - ${deployment}\n`,
  );
  expect(exitCode).toBe(0);
  expect(output.match(/model: m$/gm)).toHaveLength(1);
  expect(notes).toContain("Deployments that repeat another one add to its share of calls: chat.");
});

test("fallbacks for long inputs are fallbacks", async () => {
  const { exitCode, output, notes } = await convert(`
model_list:
  - { model_name: chat, litellm_params: { model: openai/m, api_base: "http://10.0.0.1/v1" } }
  - { model_name: long, litellm_params: { model: openai/n, api_base: "http://10.0.0.1/v1" } }
litellm_settings: { context_window_fallbacks: [{ chat: [long] }] }
`);
  expect(exitCode).toBe(0);
  expect(output).toContain("fallbacks:\n      - long\n");
  expect(notes).toContain("context_window_fallbacks serve when a model fails, too: chat.");
});

test("a file that is not LiteLLM's, or that gives no model, is told", async () => {
  const other = await convert("models: {}\n");
  expect([other.exitCode, other.output]).toEqual([1, ""]);
  expect(other.notes[0]).toContain("it has no model_list");
  const empty = await convert("model_list: []\n");
  expect(empty.exitCode).toBe(1);
  expect(empty.notes[0]).toContain("none of its deployments can be carried over");
  expect((await convert("model_list: [\n")).notes[0]).toContain("1 problem");
  expect((await runHere(["import", "portkey", "x"])).exitCode).toBe(2);
  expect((await runHere(["import", "litellm"])).exitCode).toBe(2);
});

test("settings that deployments share by a merge key belong to each of them", async () => {
  const { exitCode, output, notes } = await convert(`
shared: &shared { api_key: os.environ/SHARED, api_base: "http://10.0.0.1:8000/v1" }
model_list:
  - model_name: chat
    litellm_params: { <<: *shared, model: openai/large }
  - model_name: small
    litellm_params:
      <<: *shared
      model: openai/small
`);
  expect(exitCode).toBe(0);
  expect(output).toContain("base_url: http://10.0.0.1:8000/v1\n    api_key: ${SHARED}");
  expect(notes.join("\n")).not.toContain("<<");
});

test("files that a file includes are part of it, and one that includes itself is refused", async () => {
  await folder.write(
    "more.yaml",
    "model_list:\n  - { model_name: b, litellm_params: { model: groq/y } }\nrouter_settings: { num_retries: 0 }\n",
  );
  const { exitCode, output } = await convert(`
include: [more.yaml]
model_list:
  - { model_name: a, litellm_params: { model: groq/x } }
`);
  expect(exitCode).toBe(0);
  expect(output).toMatch(/attempts: 1[^]*base_url: https:\/\/api.groq.com[^]*model: x[^]*model: y/);
  await folder.write("more.yaml", "include: [more.yaml]\n");
  expect((await convert("include: [more.yaml]\nmodel_list: []\n")).notes[0]).toContain(
    "includes itself",
  );
});

test("the configuration in the documentation of another gateway is valid", async () => {
  const page = await Bun.file("docs/coming-from.md").text();
  const [, example = ""] = /```yaml\n([^]*?)```/.exec(page) ?? [];
  expect(parseConfig(example, { name: "docs/coming-from.md", env: {} })).toMatchObject({
    ok: true,
  });
});

test("TensorZero's models are models, their routing an order, and functions are named", async () => {
  const path = await folder.write(
    "tensorzero.toml",
    `
[gateway]
bind_address = "0.0.0.0:3000"
[models.haiku]
routing = ["own", "cloud"]
timeouts = { non_streaming = { total_ms = 400 }, streaming = { ttft_ms = 250 } }
[models.haiku.providers.cloud]
type = "aws_bedrock"
model_id = "us.anthropic.claude-3-haiku-20240307-v1:0"
region = "us-east-1"
[models.haiku.providers.own]
type = "anthropic"
model_name = "claude-3-haiku-20240307"
api_key_location = "env::CLAUDE_KEY"
extra_body = [{ pointer = "/thinking", value = 1 }]
[models."a/b"]
routing = ["server", "vertex"]
[models."a/b".providers.server]
type = "sglang"
model_name = "Qwen/Qwen2.5"
api_base = "http://10.0.0.1:8000/v1/"
api_key_location = "dynamic::key"
[models."a/b".providers.vertex]
type = "gcp_vertex_gemini"
model_id = "gemini-2.5-pro"
[embedding_models.vectors]
routing = ["openai"]
[embedding_models.vectors.providers.openai]
type = "openai"
model_name = "text-embedding-3-small"
[functions.draft.variants.one]
type = "chat_completion"
model = "haiku"
`,
  );
  const { exitCode, output, errors } = await runHere(["import", "tensorzero", path]);
  expect(exitCode).toBe(0);
  const env = { CLAUDE_KEY: "k", OPENAI_API_KEY: "k" };
  const result = parseConfig(output, { name: "sluice.yaml", env });
  if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
  const [production] = result.config.environments;
  const targets = [...(production?.models.values() ?? [])].map((model) =>
    model.targets.map(({ id, priority }) => `${id} ${priority}`),
  );
  expect(targets).toEqual([
    [
      "anthropic/claude-3-haiku-20240307 1",
      "bedrock-us-east-1/us.anthropic.claude-3-haiku-20240307-v1:0 2",
    ],
    ["hosted-vllm/Qwen/Qwen2.5 1"],
    ["openai/text-embedding-3-small 1"],
  ]);
  expect(production?.otherNames?.exact.get("tensorzero::model_name::a/b")).toBe("a/b");
  expect(output).toMatch(/first_byte: 250ms\n {6}idle: 250ms\n {6}total: 400ms/);
  for (const told of [
    "extra_body is not carried over: models.haiku.providers.own.",
    "gateway is not carried over.",
    "Functions stay behind; write its prompt into the requests, and name the model of its variant: draft.",
    "Keys that callers bring (dynamic::) are not taken; the file has the provider's: a/b.",
    "Left out, Sluice makes no Google credentials;",
  ]) {
    expect(errors).toContain(told);
  }
  await folder.write("tensorzero.toml", "[models\n");
  expect((await runHere(["import", "tensorzero", path])).errors).toContain("is not valid TOML");
});
