import { describe, expect, test } from "bun:test";
import { bedrockKind } from "../kind.ts";
import { knownFamilies, ModelFamilies } from "../models/facts.ts";
import { upstreamOfKind } from "../../../../test/support/kind-settings.ts";
import { formatProblems, parseConfig } from "../../../config/load.ts";
import type { BedrockSettings } from "../settings.ts";

const arn = "arn:aws:bedrock:us-east-1:123456789012:provisioned-model/abc";

interface Sections {
  readonly upstream?: string;
  readonly chat?: string;
  readonly embedding?: string;
}

/** Two upstreams, and an alias of each kind with a target at the one of kind bedrock. */
function fileText({ upstream = "", chat = "", embedding = "" }: Sections = {}): string {
  const chatTarget = chat.includes("model:") ? chat : `model: us.anthropic.claude-x, ${chat}`;
  const embeddingTarget = embedding.includes("model:")
    ? embedding
    : `model: "amazon.titan-embed-text-v2:0", ${embedding}`;
  return `
environments: [{ name: production, hosts: ["*"], models: ["*"] }]
upstreams:
  aws: { kind: bedrock, region: us-east-1, ${upstream} }
  local: { kind: openai, base_url: "http://127.0.0.1:8000/v1" }
models:
  chat-a: { kind: chat, context_window: 1000, targets: [{ upstream: aws, ${chatTarget} }] }
  embed-a: { kind: embedding, context_window: 8192, targets: [{ upstream: aws, ${embeddingTarget} }] }
`;
}

const env = { KEY: "key-in-the-environment", TOKEN: "t" };

function read(sections?: Sections) {
  const result = parseConfig(fileText(sections), { name: "sluice.yaml", env });
  if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
  const upstream = upstreamOfKind(result.config, "bedrock", "aws");
  return { config: result.config, upstream, settings: upstream.settings };
}

function refuse(sections: Sections): string {
  const result = parseConfig(fileText(sections), { name: "sluice.yaml", env });
  return result.ok ? "no problems" : formatProblems("sluice.yaml", result.problems);
}

function modelSettings(settings: BedrockSettings, alias: string) {
  return [...(settings.models.get(alias)?.values() ?? [])][0];
}

describe("an upstream of kind bedrock", () => {
  test("needs no more than a region", () => {
    expect(read().upstream).toEqual({
      kind: bedrockKind,
      name: "aws",
      settings: {
        region: "us-east-1",
        endpoint: undefined,
        service: "runtime",
        useFips: false,
        credentials: { source: "chain", profile: undefined, assumedRole: undefined },
        models: expect.any(Map),
        countsTokens: false,
        families: {},
      },
      timeouts: { connectMs: 3000, firstByteMs: 300_000, idleMs: 300_000, totalMs: 600_000 },
      connections: {
        id: expect.any(String),
        idleMs: 30_000,
        ageMs: 300_000,
        mostIdle: 512,
        tls: undefined,
      },
      maxInFlight: 4096,
      drain: undefined,
      forwardEndUsers: "pseudonym",
      stateAccount: undefined,
    });
  });

  test("lets a stream be silent for longer than models need to write a tool's arguments", () => {
    expect(read().upstream.timeouts.idleMs).toBeGreaterThan(2 * 125_000);
  });

  test("takes a bearer key, which is never printed", () => {
    const { settings } = read({ upstream: "api_key: ${KEY}" });
    const { credentials } = settings;
    expect(credentials.source === "bearer" && credentials.apiKey.reveal()).toBe(env.KEY);
    expect(Bun.inspect(settings) + JSON.stringify(settings)).not.toContain(env.KEY);
  });

  test("takes static keys, with or without a session token, whose secrets are never printed", () => {
    const keys = "access_key_id: AKIDEXAMPLE, secret_access_key: ${KEY}";
    const { settings } = read({ upstream: `${keys}, session_token: "\${TOKEN}+/=" ` });
    const { credentials } = settings;
    if (credentials.source !== "static") throw new Error(credentials.source);
    expect(credentials.accessKeyId).toBe("AKIDEXAMPLE");
    expect(credentials.secretAccessKey.reveal()).toBe(env.KEY);
    expect(credentials.sessionToken?.reveal()).toBe("t+/=");
    expect(Bun.inspect(settings) + JSON.stringify(settings)).not.toContain(env.KEY);
    expect(read({ upstream: keys }).settings.credentials).toMatchObject({
      source: "static",
      sessionToken: undefined,
    });
  });

  const role = "role_arn: 'arn:aws:iam::111122223333:role/team/sluice'";

  test("takes a role that its keys or its chain assume", () => {
    const assumedRole = {
      roleArn: "arn:aws:iam::111122223333:role/team/sluice",
      externalId: undefined,
      sessionName: "sluice",
      sessionTags: {},
      duration: undefined,
    };
    const { credentials } = read({ upstream: `assume_role: { ${role} }` }).settings;
    expect(credentials).toEqual({ source: "chain", profile: undefined, assumedRole });
    const more =
      "external_id: customer/42, session_name: eu, session_tags: { team: search }, duration: 2h";
    const whole = read({
      upstream: `access_key_id: A, secret_access_key: s, assume_role: { ${role}, ${more} }`,
    }).settings.credentials;
    expect(whole).toMatchObject({
      source: "static",
      accessKeyId: "A",
      assumedRole: {
        externalId: "customer/42",
        sessionName: "eu",
        sessionTags: { team: "search" },
        duration: 7_200_000,
      },
    });
  });

  test.each([
    [`api_key: k, assume_role: { ${role} }`, "assume_role: must not be set together with api_key"],
    ["assume_role: {}", "assume_role.role_arn: is required"],
    ["assume_role: { role_arn: 'arn:aws:iam::1:user/x' }", "assume_role.role_arn: must be the ARN"],
    [`assume_role: { ${role}, external_id: 'a b' }`, "assume_role.external_id: must be 2 to 1224"],
    [`assume_role: { ${role}, session_name: a }`, "assume_role.session_name: must be 2 to 64"],
    [`assume_role: { ${role}, session_tags: { 'aws:x': y } }`, "and not begin with aws:"],
    [`assume_role: { ${role}, session_tags: { x: 'a#' } }`, "session_tags.x: must be at most 256"],
    [
      `assume_role: { ${role}, session_tags: { Team: a, team: b } }`,
      "more than the case of letters",
    ],
    [`assume_role: { ${role}, duration: 5m }`, "assume_role.duration: must be a duration from 15m"],
  ])("is refused with %s", (upstream, message) => {
    expect(refuse({ upstream })).toContain(message);
  });

  test("takes a profile, its own address and FIPS", () => {
    expect(read({ upstream: "profile: team, fips: true" }).settings).toMatchObject({
      credentials: { source: "chain", profile: "team" },
      useFips: true,
    });
    const endpoint = read({ upstream: "endpoint: 'http://127.0.0.1:9/'" }).settings.endpoint;
    expect(endpoint).toBe("http://127.0.0.1:9");
  });

  test.each([
    "eu-central-1",
    "ap-southeast-7",
    "us-gov-west-1",
    "cn-northwest-1",
    "us-isob-east-1",
    "eusc-de-east-1",
  ])("may be in the region %s", (region) => {
    const text = fileText().replace("region: us-east-1", `region: ${region}`);
    expect(parseConfig(text, { name: "x", env })).toMatchObject({ ok: true });
  });

  test.each(["us-east", "US-EAST-1", "us_east_1", "us-east-1a", "useast1", "https://x", "''"])(
    "is refused for the region %s",
    (region) => {
      const text = fileText().replace("region: us-east-1", `region: ${region}`);
      const result = parseConfig(text, { name: "x", env });
      expect(result.ok ? "" : formatProblems("x", result.problems)).toContain(
        "upstreams.aws.region: must be a region such as us-east-1",
      );
    },
  );

  const keys = "access_key_id: A, secret_access_key: s";

  test.each([
    [`api_key: k, ${keys}`, "access_key_id: must not be set together with api_key"],
    [`api_key: k, ${keys}`, "secret_access_key: must not be set together with api_key"],
    ["api_key: k, session_token: t", "session_token: must not be set together with api_key"],
    ["api_key: k, profile: p", "profile: must not be set together with api_key"],
    [`profile: p, ${keys}`, "profile: must not be set together with access_key_id"],
    ["access_key_id: A", "access_key_id: needs secret_access_key beside it"],
    ["secret_access_key: s", "secret_access_key: needs access_key_id beside it"],
    ["session_token: t", "session_token: needs access_key_id beside it"],
    ["fips: true, endpoint: 'https://h'", "fips: must not be set together with endpoint"],
    ["endpoint: 'h:443'", "endpoint: must be an http:// or https:// URL without user"],
    ["endpoint: 'https://u:p@h'", "endpoint: must be an http:// or https:// URL without user"],
    ["endpoint: 'https://h?x=1'", "endpoint: must be an http:// or https:// URL without user"],
    ["api_key: 'two words'", "api_key: must be visible ASCII without spaces"],
    ["access_key_id: 'A B', secret_access_key: s", "access_key_id: must be letters, digits"],
    ["profile: ''", "profile: must not be empty"],
    ["fips: maybe", "fips: must be true or false"],
    ["base_url: 'http://h'", "base_url: unknown key"],
    ["acces_key_id: A", "acces_key_id: unknown key; did you mean 'access_key_id'?"],
    ["timeouts: { idle: 2h }", "timeouts.idle: must be a duration from 10ms to 1h"],
  ])("is refused with %s", (upstream, message) => {
    expect(refuse({ upstream })).toContain(`upstreams.aws.${message}`);
  });

  test("has all contradictions reported at once, and no secret with them", () => {
    const message = refuse({ upstream: "api_key: ${KEY}, session_token: ${KEY}, profile: p" });
    expect(message).toStartWith("sluice.yaml: 3 problems");
    expect(message).not.toContain(env.KEY);
  });
});

describe("a chat target's section", () => {
  test("has only defaults where it is empty", () => {
    const { settings, config } = read({ chat: "bedrock: {}" });
    expect(modelSettings(settings, "chat-a")).toEqual({
      family: undefined,
      api: "converse",
      identifiers: {},
      profiles: {},
      maxOutputTokens: undefined,
      defaultOutputTokens: undefined,
      capabilities: {},
      dropUnsupported: false,
      conversation: "repair",
      promptCache: "as_sent",
      validateAnswers: false,
      guardrail: undefined,
      requestMetadata: {},
      serviceTier: undefined,
      latency: undefined,
      additionalFields: {},
      inputType: "search_document",
      truncate: "none",
    });
    expect(config.environments[0]?.models.get("chat-a")?.targets).toEqual([
      {
        id: "aws/us.anthropic.claude-x",
        upstream: "aws",
        model: "us.anthropic.claude-x",
        priority: 1,
        weight: 1,
        outputQuotaWeight: 1,
      },
    ]);
  });

  test("goes to the upstream under its alias and identifier", () => {
    const section = `family: claude-4, default_output_tokens: 9, drop_unsupported: true, validate_answers: true,
      service_tier: flex, conversation: strict,
      guardrail: { identifier: gr1, version: DRAFT, trace: enabled_full, stream_processing: async },
      request_metadata: { team: "search: 1/2" }, latency: optimized,
      additional_fields: { top_k: 50, thinking: { type: enabled, budget_tokens: 1024 }, a: [x] }`;
    const { settings } = read({ chat: `model: "${arn}", bedrock: { ${section} }` });
    expect([...settings.models.keys()]).toEqual(["chat-a", "embed-a"]);
    expect(settings.models.get("chat-a")?.get(arn)).toEqual({
      family: "claude-4",
      api: "converse",
      identifiers: {},
      profiles: {},
      maxOutputTokens: undefined,
      defaultOutputTokens: 9,
      capabilities: {},
      dropUnsupported: true,
      conversation: "strict",
      promptCache: "as_sent",
      validateAnswers: true,
      guardrail: {
        identifier: "gr1",
        version: "DRAFT",
        trace: "enabled_full",
        streamProcessing: "async",
      },
      requestMetadata: { team: "search: 1/2" },
      serviceTier: "flex",
      latency: "optimized",
      additionalFields: {
        top_k: 50,
        thinking: { type: "enabled", budget_tokens: 1024 },
        a: ["x"],
      },
      inputType: "search_document",
      truncate: "none",
    });
  });

  test("may set every capability by its name in snake case", () => {
    const every = Object.keys(knownFamilies.capabilitiesOf("claude-4"));
    const written = every.map((name) => {
      const key = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      if (name === "reasoning") return `${key}: adaptive`;
      if (name === "thinkingOff") return `${key}: never`;
      const isNumber = name.startsWith("max") || /Weight$|MinTokens$/.test(name);
      return isNumber ? `${key}: 77` : `${key}: ${name.length % 2 === 0}`;
    });
    const expected: Record<string, unknown> = {};
    for (const name of every) expected[name] = name.length % 2 === 0;
    const numbers = {
      promptCacheMinTokens: 77,
      outputQuotaWeight: 77,
      maxOutputTokens: 77,
      maxImages: 77,
      maxImageBytes: 77,
    };
    Object.assign(expected, { reasoning: "adaptive", thinkingOff: "never", ...numbers });
    const { settings } = read({ chat: `bedrock: { capabilities: { ${written.join(", ")} } }` });
    const capabilities = modelSettings(settings, "chat-a")?.capabilities;
    expect<unknown>(capabilities).toEqual(expected);
    expect(every.length).toBeGreaterThan(20);
  });

  test("takes flags from the environment", () => {
    const { settings } = read({ chat: "bedrock: { capabilities: { tools: '${T:-false}' } }" });
    expect(modelSettings(settings, "chat-a")?.capabilities).toEqual({ tools: false });
  });

  test("has the values of a family that the operator adds at the upstream", () => {
    const acme = "{ models: '^acme[.]', like: nova, capabilities: { stop: false } }";
    const upstream = `families: { acme: ${acme}, nova: { capabilities: { images: false } } }`;
    const { families } = read({ upstream, chat: "bedrock: { family: acme }" }).settings;
    const known = new ModelFamilies(families);
    expect(known.familyOf("us.acme.roadrunner-1")).toBe("acme");
    expect(known.familyOf("us.amazon.nova-lite-v1:0")).toBe("nova");
    const nova = { ...knownFamilies.capabilitiesOf("nova"), images: false };
    expect(known.capabilitiesOf("nova")).toEqual(nova);
    expect(known.capabilitiesOf("acme")).toEqual({ ...nova, stop: false });
  });

  test("names every mistake in the operator's families at once", () => {
    const families = [
      "a: { models: '(', capabilities: { tool: true }, kind: chat }",
      "b: { like: 5, as_of: yesterday, basis: guessed }",
    ];
    const text = refuse({ upstream: `families: { ${families.join(", ")} }` });
    for (const problem of [
      "a.models: must be a regular expression",
      "a.capabilities.tool: unknown key",
      "a.kind: unknown key",
      "b.like: must be",
      "b.as_of: must be a date such as 2026-11-23",
      "b.basis: must be one of: documented, measured, reported",
    ]) {
      expect(text).toContain(`upstreams.aws.families.${problem}`);
    }
  });

  test("names contradictions between the operator's families at once", () => {
    const families =
      "a: { like: claud-4 }, b: { like: c }, c: { like: b }, claude-3: { like: claude-4 }, " +
      "titan-embed-v2: { capabilities: {} }";
    const text = refuse({ upstream: `families: { ${families} }` });
    for (const problem of [
      "a.like: no family has this name; did you mean 'claude-4'?",
      "b.like: leads back to the family itself",
      "c.like: leads back to the family itself",
      "claude-3.like: leads back to the family itself",
      "titan-embed-v2: is a family of embedding models",
    ]) {
      expect(text).toContain(`upstreams.aws.families.${problem}`);
    }
  });

  const longPairs = Array.from({ length: 17 }, (_, index) => `k${index}: v`).join(", ");

  test.each([
    ["family: claud-4", "bedrock.family: must be one of: claude-3, "],
    ["family: claud-4", "did you mean 'claude-4'?"],
    ["family: titan-embed-v2", "bedrock.family: must be one of: claude-3, "],
    ["capabilities: { stream_tools: true }", "did you mean 'streaming_tools'?"],
    ["capabilities: { tools: yes }", "capabilities.tools: must be true or false"],
    ["capabilities: { reasoning: high }", "must be one of: none, thinking-budget, adaptive"],
    ["capabilities: { max_output_tokens: 0 }", "max_output_tokens: must be at least 1"],
    ["default_output_tokens: 0", "default_output_tokens: must be at least 1"],
    ["guardrail: { identifier: g }", "guardrail.version: is required"],
    ['guardrail: { identifier: "g\\nh", version: "1" }', "guardrail.identifier: must be the"],
    ['guardrail: { identifier: gü, version: "1" }', "guardrail.identifier: must be the"],
    ["guardrail: { identifier: g, version: 1 }", "put the value in quotes"],
    ["guardrail: { identifier: g, version: draft }", "must be a number in quotes, or DRAFT"],
    ["request_metadata: { 'a&b': c }", "must be at most 256 letters, digits, spaces"],
    ["request_metadata: { a: 'ü' }", "request_metadata.a: must be at most 256 letters"],
    [`request_metadata: { a: ${"x".repeat(257)} }`, "must be at most 256 letters"],
    [`request_metadata: { ${longPairs} }`, "request_metadata: must have at most 16 keys"],
    ["service_tier: auto", "must be one of: default, flex, priority, reserved"],
    ["latency: low", "must be one of: standard, optimized"],
    ["additional_fields: [1]", "additional_fields: must be a map of keys and values"],
    ["truncate: end", "bedrock.truncate: unknown key"],
    ["input_type: search_query", "bedrock.input_type: unknown key"],
  ])("is refused with %s", (section, message) => {
    const text = refuse({ chat: `bedrock: { ${section} }` });
    expect(text).toContain("models.chat-a.targets[0].bedrock.");
    expect(text).toContain(message);
  });
});

test("the alias' own limit of an answer is kept, also without a section of the target", () => {
  const text = fileText().replace(
    "context_window: 1000",
    "context_window: 1000, max_output_tokens: 123",
  );
  const result = parseConfig(text, { name: "sluice.yaml", env });
  if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
  const { settings } = upstreamOfKind(result.config, "bedrock", "aws");
  expect(modelSettings(settings, "chat-a")?.maxOutputTokens).toBe(123);
});

describe("an embedding target's section", () => {
  test("sets the purpose of embeddings and how inputs are truncated", () => {
    const model = 'model: "cohere.embed-english-v3", bedrock: {';
    const { settings } = read({ embedding: `${model} input_type: search_query, truncate: end }` });
    expect(modelSettings(settings, "embed-a")).toMatchObject({
      family: undefined,
      inputType: "search_query",
      truncate: "end",
    });
    const defaults = read({ embedding: `${model} }` }).settings;
    expect(modelSettings(defaults, "embed-a")).toMatchObject({
      inputType: "search_document",
      truncate: "none",
    });
  });

  test.each([
    ["family: claude-4", "family: must be one of: titan-embed-v1, titan-embed-v2"],
    ["truncate: middle", "truncate: must be one of: none, start, end"],
    ["input_type: query", "input_type: must be one of: search_document, search_query"],
    ["capabilities: { tools: true }", "capabilities: unknown key"],
  ])("is refused with %s", (section, message) => {
    const text = refuse({ embedding: `bedrock: { ${section} }` });
    expect(text).toContain(`models.embed-a.targets[0].bedrock.${message}`);
  });
});

describe("a target at an upstream of kind bedrock", () => {
  test("is refused for an ARN without a family, which the ARN hides", () => {
    const message = "targets[0].model: an ARN hides the model: the target needs bedrock.family";
    for (const section of ["", ", bedrock: {}"]) {
      expect(refuse({ chat: `model: "${arn}"${section}` })).toContain(`models.chat-a.${message}`);
      expect(refuse({ embedding: `model: "${arn}"${section}` })).toContain(
        `models.embed-a.${message}`,
      );
    }
  });

  test("is taken for an ARN with a family", () => {
    read({ chat: `model: "${arn}", bedrock: { family: llama-3-1 }` });
    read({ embedding: `model: "${arn}", bedrock: { family: titan-embed-v2 }` });
  });

  test("is taken for an unknown chat model, but not for an unknown embedding model", () => {
    read({ chat: "model: new.model-v9" });
    expect(refuse({ embedding: "model: new.embed-v9" })).toContain(
      "models.embed-a.targets[0].model: is not a known embedding model: the target needs bedrock.family",
    );
    read({ embedding: "model: new.embed-v9, bedrock: { family: cohere-embed-v4 }" });
  });

  test("is refused for a model of the other kind, with any family", () => {
    const titan = '"amazon.titan-embed-text-v2:0"';
    const llama = '"meta.llama3-1-70b-instruct-v1:0"';
    expect(refuse({ chat: `model: ${titan}` })).toContain(
      "models.chat-a.targets[0].model: is an embedding model, but the alias is not of that kind",
    );
    expect(refuse({ embedding: `model: ${llama}` })).toContain(
      "models.embed-a.targets[0].model: is a chat model, but the alias is not of that kind",
    );
    expect(refuse({ chat: `model: ${titan}, bedrock: { family: other-chat }` })).toContain(
      "is an embedding model",
    );
  });
});

describe("a section for bedrock", () => {
  const elsewhere = (target: string) =>
    refuse({ chat: `model: a }, { upstream: ${target}, model: b, bedrock: { family: claude-4 }` });

  test("is refused at an upstream of another kind", () => {
    expect(elsewhere("local")).toContain(
      "models.chat-a.targets[1].bedrock: is for targets at upstreams of kind bedrock only",
    );
  });

  test("adds no problem to that of a missing upstream", () => {
    expect(elsewhere("awss")).toStartWith("sluice.yaml: 1 problem\n");
  });

  test("is read at every target of its upstream, and only there", () => {
    const second = `model: a }, { upstream: aws, model: b, bedrock: { family: nova } }, { upstream: local, model: b`;
    const { settings } = read({ chat: second });
    expect([...(settings.models.get("chat-a")?.keys() ?? [])]).toEqual(["a", "b"]);
  });
});
