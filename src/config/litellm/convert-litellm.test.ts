import { describe, expect, test } from "bun:test";
import { objectOf, type JsonObject } from "../../domain/json-fields.ts";
import { parseConfig } from "../load.ts";
import { writeYaml } from "../text/yaml-syntax.ts";
import { convertLiteLlm } from "./convert-litellm.ts";

/** Deployments are written `alias: { model, ... }`; the other sections as in LiteLLM's file. */
function convert(deployments: readonly (readonly [string, JsonObject])[], rest: JsonObject = {}) {
  const list = deployments.map(([model_name, { info, ...litellm_params }]) => ({
    model_name,
    litellm_params,
    ...(info !== undefined && { model_info: info }),
  }));
  const { file, notes } = convertLiteLlm({ model_list: list, ...rest });
  const [environment] = [file["environments"]].flat();
  const whole = { ...file, names: objectOf(environment)?.["aliases"] };
  const at = (path: string): unknown =>
    path.split(" ").reduce<unknown>((value, key) => {
      return Array.isArray(value) ? value[Number(key)] : objectOf(value)?.[key];
    }, whole);
  return { file, at, notes: notes.join("\n") };
}

const local = { api_base: "http://10.0.0.1:8000/v1", api_key: "os.environ/K" };

describe("providers", () => {
  test.each([
    ["groq/llama-3.3-70b", "https://api.groq.com/openai/v1", "GROQ_API_KEY", undefined],
    ["mistral/mistral-large-latest", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", undefined],
    ["openrouter/qwen/qwen3", undefined, "OPENROUTER_API_KEY", "openrouter"],
    ["gemini/gemini-2.5-pro", undefined, "GEMINI_API_KEY", "gemini"],
    ["deepseek/deepseek-chat", undefined, "DEEPSEEK_API_KEY", "deepseek"],
    ["xai/grok-4", undefined, "XAI_API_KEY", "xai"],
    ["dashscope/qwen-max", undefined, "DASHSCOPE_API_KEY", "dashscope"],
    ["ollama/llama3.1:8b", undefined, undefined, "ollama"],
    ["ollama_chat/llama3.1:8b", undefined, undefined, "ollama"],
    ["hosted_vllm/Qwen/Qwen3", "${HOSTED_VLLM_API_BASE}", undefined, "vllm"],
    ["lm_studio/qwen", "${LM_STUDIO_API_BASE}", undefined, undefined],
    ["together_ai/meta-llama/Llama", "https://api.together.ai/v1", "TOGETHER_API_KEY", undefined],
  ])("%s has its address, key and profile", (model, base, key, profile) => {
    const { file, at, notes } = convert([["chat", { model }]]);
    const name = model.slice(0, model.indexOf("/")).replaceAll("_", "-");
    expect(at(`upstreams ${name}`)).toMatchObject({ kind: "openai" });
    expect(at(`upstreams ${name} base_url`)).toBe(base);
    expect(at(`upstreams ${name} api_key`)).toBe(key && `\${${key}}`);
    expect(at(`upstreams ${name} profile`)).toBe(profile);
    expect(notes.includes(`The key is the usual variable ${key}: chat.`)).toBe(key !== undefined);
    const names = ["HOSTED_VLLM_API_BASE", "LM_STUDIO_API_BASE"];
    const bases = Object.fromEntries(names.map((each) => [each, "http://10.0.0.1/v1"]));
    const env = { ...bases, ...(key !== undefined && { [key]: "k" }) };
    expect(parseConfig(writeYaml(file, []), { name: "x", env })).toMatchObject({ ok: true });
  });

  test("Anthropic is a kind of its own, with or without a prefix", () => {
    const { at } = convert([
      ["a", { model: "anthropic/claude-sonnet-4-6", api_base: "https://a.example/v1/messages" }],
      ["b", { model: "claude-haiku-4-5", max_tokens: 500, drop_params: true }],
    ]);
    expect(at("upstreams anthropic")).toMatchObject({
      kind: "anthropic",
      base_url: "https://a.example",
    });
    expect(at("upstreams anthropic-2")).toEqual({
      kind: "anthropic",
      api_key: "${ANTHROPIC_API_KEY}",
    });
    expect(at("models b targets 0 anthropic")).toEqual({
      drop_unsupported: true,
      default_output_tokens: 500,
    });
    expect(at("models b max_output_tokens")).toBe(64_000);
  });

  test("an address that is a known server has its profile, whatever its provider is called", () => {
    const { at } = convert([
      ["a", { model: "openai/x/y", api_base: "https://openrouter.ai/api/v1", api_key: "k" }],
    ]);
    expect(at("upstreams openrouter profile")).toBe("openrouter");
    expect(at("models a targets 0 model")).toBe("x/y");
  });

  test.each([
    [
      "azure/gpt",
      "https://r.openai.azure.com/",
      undefined,
      "/openai/deployments/gpt",
      "${AZURE_API_VERSION:-2025-02-01-preview}",
    ],
    [
      "azure/gpt",
      "https://r.openai.azure.com/openai",
      "2025-01-01",
      "/openai/deployments/gpt",
      "2025-01-01",
    ],
    [
      "azure/gpt",
      "https://r.openai.azure.com/openai/deployments/own/chat/completions?api-version=2024-06-01",
      undefined,
      "/openai/deployments/own",
      "2024-06-01",
    ],
    ["azure/gpt", "https://r.openai.azure.com/openai/v1/", undefined, "/openai/v1", undefined],
    [
      "azure/responses/gpt",
      "https://r.openai.azure.com",
      "2025-04-01-preview",
      "/openai",
      "2025-04-01-preview",
    ],
    ["azure/responses/gpt", "https://r.openai.azure.com", "v1", "/openai/v1", undefined],
  ])("%s at %s", (model, api_base, api_version, path, version) => {
    const { at } = convert([["a", { model, api_base, api_version, api_key: "os.environ/K" }]]);
    expect(at("upstreams azure-gpt base_url")).toBe(`https://r.openai.azure.com${path}`);
    expect(at("upstreams azure-gpt query api-version")).toBe(version);
    expect(at("models a targets 0 model")).toBe("gpt");
    expect(at("models a targets 0 openai api")).toBe(
      model.includes("responses") ? "responses" : undefined,
    );
  });

  test("Azure's other addresses and credentials", () => {
    const { at } = convert([
      ["a", { model: "azure/gpt", tenant_id: "t", client_id: "c", client_secret: "os.environ/S" }],
      [
        "b",
        {
          model: "azure_ai/claude-sonnet-4-6",
          api_base: "https://r.services.ai.azure.com",
          api_key: "k",
        },
      ],
      [
        "c",
        { model: "azure_ai/llama", api_base: "https://r.services.ai.azure.com/", api_key: "k" },
      ],
    ]);
    expect(at("upstreams azure-gpt")).toMatchObject({
      base_url: "${AZURE_API_BASE}/openai/deployments/gpt",
      entra: { tenant_id: "t", client_id: "c", client_secret: "${S}" },
    });
    expect(at("upstreams azure-ai-anthropic base_url")).toBe(
      "https://r.services.ai.azure.com/anthropic",
    );
    expect(at("upstreams azure-ai")).toMatchObject({
      profile: "azure",
      base_url: "https://r.services.ai.azure.com/models",
    });
  });

  test("Bedrock's region is the one that LiteLLM finds, and said where nothing names it", () => {
    const arn = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc";
    const { at, notes } = convert([
      ["a", { model: "bedrock/anthropic.claude-sonnet-4-6" }],
      ["b", { model: "bedrock/converse/us.anthropic.claude-sonnet-4-6", model_id: arn }],
      ["c", { model: "anthropic.claude-3-haiku-20240307-v1:0", aws_region_name: "us-east-1" }],
    ]);
    expect(at("upstreams bedrock region")).toBe("${AWS_REGION_NAME:-us-west-2}");
    expect(notes).toContain("The region is AWS_REGION_NAME, else us-west-2, as in LiteLLM;");
    expect(at("upstreams bedrock-eu-west-1 region")).toBe("eu-west-1");
    expect(at("models b targets 0 bedrock profiles")).toEqual({ production: arn });
    expect(at("upstreams bedrock-us-east-1 kind")).toBe("bedrock");
  });

  test("wildcards, providers that Sluice lacks and unknown ones are told apart", () => {
    const { at, notes } = convert([
      ["openai/*", { model: "openai/*" }],
      ["v", { model: "vertex_ai/gemini-2.5-pro" }],
      ["m", { model: "mistralai/mistral-7b" }],
      ["n", { model: "acme/n", ...local }],
      ["claude-*", { model: "groq/x" }],
    ]);
    expect(notes).toContain(
      "Left out, a wildcard; name each model that callers use: model_list[0] (openai/*).",
    );
    expect(notes).toContain("Left out, Sluice makes no Google credentials;");
    expect(notes).toContain("Left out, its provider mistralai is not known; with an api_base");
    expect(notes).toContain(
      "The provider acme is not known and taken for a server of OpenAI's API: n.",
    );
    expect(at("names")).toEqual({ "claude-*": "claude" });
    expect(at("models claude targets 0 model")).toBe("x");
  });

  test("credentials that are listed once serve the deployments that name them", () => {
    const credential_list = [
      {
        credential_name: "one",
        credential_values: { api_key: "os.environ/ONE", api_base: "https://one.example/v1" },
      },
    ];
    const { at, notes } = convert([["a", { model: "openai/x", litellm_credential_name: "one" }]], {
      credential_list,
    });
    expect(at("upstreams one-example")).toMatchObject({
      base_url: "https://one.example/v1",
      api_key: "${ONE}",
    });
    expect(notes).not.toContain("credential");
  });
});

describe("sizes, limits and times", () => {
  test("sizes are stated, served, known or guessed, and only the guess has to be looked up", () => {
    const { at, notes } = convert([
      [
        "stated",
        { model: "openai/m", ...local, info: { max_input_tokens: 1000, max_output_tokens: 200 } },
      ],
      ["served", { model: "ollama/m", num_ctx: 16_384 }],
      ["known", { model: "openai/gpt-4o", ...local }],
      ["named", { model: "openai/m", ...local, info: { base_model: "azure/gpt-4o-mini" } }],
      ["guess", { model: "openai/m", ...local }],
    ]);
    const sizes = (name: string) => [
      at(`models ${name} context_window`),
      at(`models ${name} max_output_tokens`),
    ];
    expect(sizes("stated")).toEqual([1000, 200]);
    expect(sizes("served")).toEqual([16_384, 16_384]);
    expect(sizes("known")).toEqual([128_000, 16_384]);
    expect(sizes("named")).toEqual([128_000, 16_384]);
    expect(sizes("guess")).toEqual([128_000, 128_000]);
    expect(notes).toContain(
      "num_ctx is the context_window here; OLLAMA_CONTEXT_LENGTH sets it at the server",
    );
    expect(notes).toContain("so look it up: guess (128000).");
    expect(notes).toContain(
      "max_output_tokens is the context_window, since no limit is known: served, guess.",
    );
  });

  test("the nearest timeout counts, and a limit of one deployment is an upstream of its own", () => {
    const { at, notes } = convert(
      [
        ["a", { model: "groq/x", timeout: "5", stream_timeout: 0.5, max_parallel_requests: 3 }],
        ["b", { model: "groq/x" }],
        ["c", { model: "groq/y", max_parallel_requests: 3 }],
      ],
      {
        router_settings: { timeout: 30, num_retries: 20 },
        litellm_settings: { request_timeout: 600 },
      },
    );
    expect(at("upstreams groq timeouts")).toEqual({
      first_byte: "500ms",
      idle: "500ms",
      total: "5s",
    });
    expect(at("upstreams groq max_in_flight")).toBe(3);
    expect(at("upstreams groq-2 timeouts")).toEqual({
      first_byte: "30s",
      idle: "30s",
      total: "30s",
    });
    expect(at("models c targets 0 upstream")).toBe("groq-3");
    expect(at("routing attempts")).toBe(10);
    expect(notes).not.toContain("request_timeout");
    expect(notes).toContain(
      "timeout is `timeouts.total` of the upstream, which bounds streams too.",
    );
  });

  test("settings that differ have advice, and those that say nothing are not named", () => {
    const { notes } = convert([["a", { model: "groq/x", temperature: 0.2, rpm: "10" }]], {
      litellm_settings: {
        success_callback: ["x"],
        set_verbose: false,
        telemetry: null,
        callbacks: [],
        odd: 1,
      },
      general_settings: { database_url: "postgres://x" },
    });
    expect(notes).toContain(
      "litellm_params.temperature is not carried over; Sluice adds no defaults",
    );
    expect(notes).toContain("rpm and tpm of a deployment are shares of calls here, not limits;");
    expect(notes).toContain("Not carried over; events leave by metrics");
    expect(notes).toContain("Not carried over; `storage.url`");
    expect(notes).toContain(
      "Not carried over; Sluice has nothing of this name: litellm_settings.odd.",
    );
    expect(notes).not.toMatch(/set_verbose|telemetry|\.callbacks/);
  });
});

describe("names", () => {
  test("a name that Sluice does not take is an other name, or has to be changed", () => {
    const { at, notes } = convert([
      ["modèle@v1", { model: "groq/x" }],
      ["my model", { model: "groq/y" }],
      ["my-model", { model: "groq/z" }],
    ]);
    expect(at("names")).toEqual({ "modèle@v1": "mod-le-v1" });
    expect(at("models my-model targets 0 model")).toBe("z");
    expect(at("models my-model-2 targets 0 model")).toBe("y");
    expect(notes).toContain("my model is my-model-2 here, so callers must change the name.");
  });

  test("other names of the router lead to models, and those that cannot are named", () => {
    const { at, notes } = convert(
      [
        ["a", { model: "groq/x" }],
        ["b", { model: "groq/y" }],
      ],
      {
        router_settings: {
          model_group_alias: {
            one: "a",
            two: { model: "b", hidden: true },
            a: "b",
            all: ["a", "b"],
            no: "c",
          },
          fallbacks: [{ one: ["b"] }, { b: ["one", "c"] }],
        },
      },
    );
    expect(at("names")).toEqual({ one: "a", two: "b" });
    expect(at("models b fallbacks")).toEqual(["a"]);
    expect(notes).toContain("The alias a is left out, since a model has this name.");
    expect(notes).toContain("The alias all is left out, since it names several.");
    expect(notes).toContain("The alias no is left out, since c is no model of this file.");
    expect(notes).toContain("Fallbacks are left out, since c is no model of this file: b -> c.");
  });

  test("a model in a variable is a variable", () => {
    const { at, notes } = convert([
      ["a", { model: "os.environ/MODEL", ...local, api_key: "${KEY}" }],
    ]);
    expect(at("models a targets 0 model")).toBe("${MODEL}");
    expect(at("upstreams 10-0-0-1 api_key")).toBe("${KEY}");
    expect(notes).toContain(
      "The model is in a variable, which must have its name without a provider's prefix: a.",
    );
    expect(notes).toContain("${NAME} is taken for a variable");
  });

  test("fallbacks of what is left out, and to it, say why", () => {
    const { at, notes } = convert(
      [
        ["a", { model: "groq/x" }],
        ["w", { model: "vertex_ai/x" }],
        ["e", { model: "openai/text-embedding-3-small", ...local }],
      ],
      { litellm_settings: { fallbacks: [{ a: ["w"] }, { e: ["a"] }, { w: ["a"] }] } },
    );
    expect(at("models a fallbacks")).toBeUndefined();
    expect(notes).toContain(
      "Fallbacks are left out, since w is left out: Sluice makes no Google credentials",
    );
    expect(notes).toContain(
      "vectors of two models do not compare, and only chat models have fallbacks: e -> a.",
    );
    expect(notes).toContain("The fallbacks of w are left out, since w is left out:");
  });
});

describe("prices", () => {
  const known = { ...local, model: "openai/x" };

  test("those of a deployment are its target's, read digit by digit", () => {
    const { at, notes } = convert([
      [
        "a",
        {
          ...known,
          input_cost_per_token: 3e-6,
          output_cost_per_token: "1.5e-05",
          output_cost_per_token_above_200k_tokens: 2.25e-5,
          info: { input_cost_per_token: 9, cache_read_input_token_cost: "2.9999999999999997e-07" },
        },
      ],
      [
        "free",
        {
          ...known,
          model: "openai/f",
          info: { input_cost_per_token: 0, output_cost_per_token: 0 },
        },
      ],
      [
        "e",
        { ...known, model: "openai/e", input_cost_per_token: 2e-8, info: { mode: "embedding" } },
      ],
    ]);
    expect(at("models a targets 0 price")).toEqual({
      input: "3",
      cache_read: "0.3",
      output: "15",
      long_prompt: { over_tokens: 200_000, output: "22.5" },
    });
    expect(at("models free targets 0 price")).toEqual({ input: "0", output: "0" });
    expect(at("models e targets 0 price")).toEqual({ input: "0.02" });
    expect(notes).not.toContain("cost_per");
  });

  test.each([
    ["without its other half", { input_cost_per_token: 3e-6 }, "input_cost_per_token"],
    [
      "beyond what a call can cost",
      { input_cost_per_token: 3, output_cost_per_token: 3e-6 },
      "output_cost_per_token",
    ],
    ["of a second", { input_cost_per_second: 3e-6 }, "input_cost_per_second"],
    [
      "in a variable",
      {
        input_cost_per_token: 3e-6,
        output_cost_per_token: 3e-6,
        cache_read_input_token_cost: "os.environ/P",
      },
      "cache_read_input_token_cost",
    ],
  ])("a price %s is named", (_, fields, named) => {
    const { notes } = convert([["a", { ...known, ...fields }]]);
    expect(notes).toContain(
      `litellm_params.${named} is not carried over; write it as \`price\` of the target, in USD per 1M tokens: a.`,
    );
  });

  test("a target has one price in all models: the first that is written", () => {
    const price = (usd: number) => ({ input_cost_per_token: usd, output_cost_per_token: usd });
    const { at, notes } = convert([
      ["a", known],
      ["a", { ...known, ...price(1e-6) }],
      ["b", { ...known, ...price(2e-6) }],
    ]);
    const one = { input: "1", output: "1" };
    expect(at("models a targets")).toMatchObject([{ price: one, weight: 2 }]);
    expect(at("models b targets 0 price")).toEqual(one);
    expect(notes).toContain("the first that says a price or options counts: a, b.");
  });
});
