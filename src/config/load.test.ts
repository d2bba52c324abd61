import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { openaiKind } from "../upstreams/openai/kind.ts";
import { upstreamOfKind } from "../../test/support/kind-settings.ts";
import type { Config } from "./config.ts";
import { formatProblems, parseConfig } from "./load.ts";

const pepper = "0123456789abcdef0123456789abcdef";
const pepperNamed = (name: string): string => name.padEnd(32, "-");

/** A whole file; sections given replace those of the smallest valid one. */
function fileText(sections: Readonly<Record<string, string>> = {}): string {
  const whole: Record<string, string> = {
    environments: "[{ name: production, hosts: [models.example.com], models: [chat-a, embed-a] }]",
    upstreams: "{ local-vllm: { kind: openai, base_url: http://127.0.0.1:8000/v1 } }",
    models:
      "{ chat-a: { kind: chat, context_window: 200000, targets: [{ upstream: local-vllm, model: a }] }," +
      " embed-a: { kind: embedding, context_window: 8192, targets: [{ upstream: local-vllm, model: e }] } }",
    ...sections,
  };
  return Object.entries(whole)
    .map(([key, value]) => `${key}: ${value}\n`)
    .join("");
}

function read(text: string, env: Readonly<Record<string, string>> = {}): Config {
  const result = parseConfig(text, { name: "sluice.yaml", env });
  if (!result.ok) throw new Error(formatProblems("sluice.yaml", result.problems));
  return result.config;
}

function refuse(text: string, env: Readonly<Record<string, string>> = {}): string {
  const result = parseConfig(text, { name: "sluice.yaml", env });
  return result.ok ? "no problems" : formatProblems("sluice.yaml", result.problems);
}

function upstream(fields: string): string {
  return fileText({
    upstreams: `{ local-vllm: { kind: openai, base_url: http://127.0.0.1:8000/v1, ${fields} } }`,
  });
}

function chatModel(fields: string): string {
  const environments = "[{ name: production, hosts: ['*'], models: ['*'] }]";
  const targets = "targets: [{ upstream: local-vllm, model: a }]";
  return fileText({
    environments,
    models: `{ chat-a: { kind: chat, context_window: 2000, ${targets}, ${fields} } }`,
  });
}

describe("a valid file", () => {
  test("has its database in data_dir, unless it names another place", () => {
    const pathIn = (more: string): string => read(`${fileText()}\n${more}`).storage.path;
    expect(pathIn("data_dir: /var/lib/sluice")).toBe("/var/lib/sluice/sluice.db");
    const elsewhere = "data_dir: /var/lib/sluice\nstorage: { url: 'sqlite:./here.db' }";
    expect(pathIn(elsewhere)).toBe(resolve("here.db"));
    expect(pathIn("storage: { url: 'sqlite::memory:' }")).toBe(":memory:");
  });

  test("gets a default for every limit that it leaves out", () => {
    expect(read(fileText())).toMatchObject({
      listen: {
        data: { hostname: "127.0.0.1", port: 8080 },
        admin: { hostname: "127.0.0.1", port: 8081 },
      },
      storage: { backend: "sqlite", path: resolve("data/sluice.db") },
      dataDir: resolve("data"),
      limits: { store: "memory", defaultOutputTokens: 1024 },
      http: {
        bodyLimitBytes: 10 * 1024 ** 2,
        decompressedLimitBytes: 16 * 1024 ** 2,
        decompressionRatio: 100,
        jsonDepth: 64,
        jsonValues: 600_000,
        bodyMemory: {
          allBytes: 512 * 1024 ** 2,
          ownBytes: 128 * 1024 ** 2,
          waitMs: 30_000,
          queue: 1_000,
        },
        maxHeaders: 100,
        bodyTimeoutMs: 30_000,
        idleTimeoutMs: 75_000,
        allowedOrigins: ["*"],
      },
      streams: {
        keepAliveIntervalMs: 15_000,
        keepAlive: "comment",
        holdHeadersMs: 10_000,
        writeTimeoutMs: 30_000,
      },
      answers: {
        chatLimitBytes: 32 * 1024 ** 2,
        chatValues: 8_000_000,
        embeddingLimitBytes: 256 * 1024 ** 2,
      },
      shutdown: { preStopMs: 5000, drainTimeoutMs: 30_000 },
      auth: { peppers: [] },
      ledger: { batchRows: 2000, flushIntervalMs: 1000 },
      telemetry: { logLevel: "info", logFormat: "text" },
      upstreamRequests: 8192,
      processes: 1,
      imageFetch: {
        enabled: false,
        maxBytes: 10 * 1024 ** 2,
        timeoutMs: 5000,
        maxImages: 16,
        allowedHosts: [],
        allowsPrivateAddresses: false,
      },
    });
  });

  test("gives an upstream with every default in milliseconds and plain values", () => {
    expect(read(fileText()).upstreams.get("local-vllm")).toEqual({
      kind: openaiKind,
      name: "local-vllm",
      settings: {
        baseUrl: "http://127.0.0.1:8000/v1",
        apiKey: undefined,
        apiKeyHeader: "authorization",
        headers: {},
        query: {},
        quirks: new Set(),
        responses: new Set(),
        forwardFields: [],
        dropFields: [],
        maxTokensField: "as_sent",
        instructionRole: "as_sent",
        flattenTextParts: false,
        streamUsage: true,
        sessionCacheKey: false,
        takesTokenIds: true,
        embeddingBatchLimit: 2048,
        embeddingEncoding: "auto",
      },
      timeouts: { connectMs: 3000, firstByteMs: 60_000, idleMs: 30_000, totalMs: 600_000 },
      connections: {
        id: expect.any(String),
        idleMs: 4_000,
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

  test("keeps an upstream's credential as a secret that is never printed", () => {
    const config = read(upstream("api_key: ${KEY}"), { KEY: "sk-live-1234" });
    const { settings } = upstreamOfKind(config, "openai", "local-vllm");
    expect(settings.apiKey?.reveal()).toBe("sk-live-1234");
    expect(Bun.inspect(settings)).not.toContain("sk-live");
    expect(JSON.stringify(settings)).not.toContain("sk-live");
  });

  test("gives each environment the models it names, with their targets", () => {
    const [environment] = read(fileText()).environments;
    expect([...(environment?.models.keys() ?? [])]).toEqual(["chat-a", "embed-a"]);
    expect(environment?.models.get("chat-a")).toEqual({
      alias: "chat-a",
      capabilities: {},
      kind: "chat",
      created: Date.UTC(2025, 0, 1) / 1000,
      contextWindow: 200_000,
      maxOutputTokens: 4096,
      fallbacks: [],
      hedgeAfterMs: undefined,
      timeouts: { firstByteMs: undefined, idleMs: undefined, totalMs: undefined },
      fanOut: 1,
      targets: [
        {
          id: "local-vllm/a",
          upstream: "local-vllm",
          model: "a",
          priority: 1,
          pool: undefined,
          weight: 1,
          promptCache: { filled: "by_provider", keepsAnHour: false },
        },
      ],
    });
    expect(environment?.models.get("embed-a")).toMatchObject({
      kind: "embedding",
      maxOutputTokens: undefined,
      fanOut: 64,
    });
  });

  test("offers all models in an environment with '*'", () => {
    const environments = "[{ name: p, hosts: ['*'], models: ['*'] }]";
    const [environment] = read(fileText({ environments })).environments;
    expect(environment?.models.size).toBe(2);
  });

  test("compares hosts without regard to case", () => {
    const environments = "[{ name: p, hosts: [Models.Example.COM], models: ['*'] }]";
    expect(read(fileText({ environments })).environments[0]?.hosts).toEqual(["models.example.com"]);
  });

  test("limits an answer to the context window when that is below 4096 tokens", () => {
    const model = read(chatModel("created: 0")).environments[0]?.models.get("chat-a");
    expect(model).toMatchObject({ maxOutputTokens: 2000, created: 0 });
  });

  test.each([
    ["2025-05-14", Date.UTC(2025, 4, 14) / 1000],
    ["'2024-02-29'", Date.UTC(2024, 1, 29) / 1000],
    ["1700000000", 1_700_000_000],
  ])("reads %s as the time a model was created", (written, seconds) => {
    const model = read(chatModel(`created: ${written}`)).environments[0]?.models.get("chat-a");
    expect(model?.created).toBe(seconds);
  });

  test("has four plans, which the file may change and extend", () => {
    const { plans } = read(
      fileText({
        plans:
          "{ pilot: { requests_per_minute: 1, tokens_per_minute: 2 }, mine: { custom: true } }",
      }),
    );
    expect([...plans.keys()]).toEqual(["pilot", "standard", "pro", "enterprise", "mine"]);
    expect(plans.get("pilot")?.limits).toEqual({ requestsPerMinute: 1, tokensPerMinute: 2 });
    expect(plans.get("standard")?.limits?.requestsPerMinute).toBe(300);
    expect(plans.get("pro")?.provisioned).toBe(true);
    expect(plans.get("enterprise")).toEqual({
      name: "enterprise",
      limits: undefined,
      mode: "enforce",
      tokenWeights: undefined,
      provisioned: true,
      queueTimeoutMs: 0,
      isIdempotent: false,
      responsesKeepMs: 3_600_000,
      uncapped: "debt",
      overrunFactor: 3,
      whenLimitsUnavailable: "local",
    });
    expect(plans.get("mine")?.provisioned).toBe(false);
  });

  test.each([
    ["'[::1]:8080'", { hostname: "::1", port: 8080 }],
    ["0.0.0.0:0", { hostname: "0.0.0.0", port: 0 }],
    ["localhost:65535", { hostname: "localhost", port: 65_535 }],
  ])("listens on %s", (written, address) => {
    expect(read(fileText({ listen: `{ data: ${written} }` })).listen.data).toEqual(address);
  });

  test("may let both listeners take any free port of one host", () => {
    const listen = "{ data: '127.0.0.1:0', admin: '127.0.0.1:0' }";
    expect(read(fileText({ listen })).listen.admin.port).toBe(0);
  });

  test.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["10m", 600_000],
    ["1h", 3_600_000],
    ["1d", 86_400_000],
  ])("reads the duration %s", (written, milliseconds) => {
    const { timeouts } = read(upstream(`timeouts: { total: ${written} }`)).upstreams.get(
      "local-vllm",
    ) ?? { timeouts: undefined };
    expect(timeouts?.totalMs).toBe(milliseconds);
  });

  test.each([
    ["2048", 2048],
    ["'2048'", 2048],
    ["2048B", 2048],
    ["64KiB", 65_536],
    ["1GiB", 1024 ** 3],
  ])("reads the size %s", (written, bytes) => {
    const http = `{ body_limit: ${written}, decompressed_limit: 1GiB }`;
    expect(read(fileText({ http })).http.bodyLimitBytes).toBe(bytes);
  });

  test("keeps a database in memory if configured", () => {
    expect(read(fileText({ storage: "{ url: 'sqlite::memory:' }" })).storage.path).toBe(":memory:");
  });

  test("names a PostgreSQL database without its password, which no message shows", () => {
    const url = "postgres://user:geheim@db.example:5433/sluice?sslmode=require";
    const { storage } = read(fileText({ storage: `{ url: '${url}', pool_size: 20 }` }));
    expect(storage).toMatchObject({
      backend: "postgres",
      path: "postgres://user@db.example:5433/sluice",
      poolSize: 20,
    });
    expect(Bun.inspect(storage) + JSON.stringify(storage)).not.toContain("geheim");
    expect(storage.backend === "postgres" && storage.url.reveal()).toBe(url);
  });

  test("writes header names in lower case and ends base URLs without a slash", () => {
    const settings = read(
      fileText({
        upstreams:
          "{ local-vllm: { kind: openai, base_url: 'https://h.example/v1//', headers: { X-Team: search } } }",
      }),
    ).upstreams.get("local-vllm");
    expect(settings).toMatchObject({
      settings: { baseUrl: "https://h.example/v1", headers: { "x-team": "search" } },
    });
  });

  test("takes numbers and flags from the environment", () => {
    const settings = read(upstream("max_in_flight: ${MOST}, stream_usage: ${USAGE:-false}"), {
      MOST: "12",
    }).upstreams.get("local-vllm");
    expect(settings).toMatchObject({ maxInFlight: 12, settings: { streamUsage: false } });
  });

  test("takes a pepper from the environment", () => {
    const { auth } = read(fileText({ auth: "{ peppers: [${PEPPER}] }" }), { PEPPER: pepper });
    expect(auth.peppers.map((each) => each.reveal())).toEqual([pepper]);
  });

  test("takes several peppers, in their order", () => {
    const text = fileText({
      auth: `{ peppers: ["${pepperNamed("new")}", "${pepperNamed("old")}"] }`,
    });
    const { auth } = read(text);
    expect(auth.peppers.map((each) => each.reveal())).toEqual([
      pepperNamed("new"),
      pepperNamed("old"),
    ]);
  });
});

describe("a file with mistakes", () => {
  test("gets all of them in one text, by line, with the count", () => {
    const text = `listen: { data: 8080 }
environments:
  - { name: production, hosts: ["*"], models: [chat-b] }
upstreams:
  local-vllm:
    kindd: openai
    base_url: \${MISSING}
models:
  chat-a:
    kind: chat
    context_window: 1000
    targets: [{ upstream: local-vlm, model: a }]
`;
    expect(refuse(text)).toBe(`sluice.yaml: 5 problems
sluice.yaml:1:11 listen.data: must be host:port with a port from 0 to 65535, such as 127.0.0.1:8080 or '[::1]:8080'
sluice.yaml:3:48 environments[0].models[0]: the model 'chat-b' is not configured; did you mean 'chat-a'?
sluice.yaml:6:5 upstreams.local-vllm.kindd: unknown key; did you mean 'kind'?
sluice.yaml:7:5 upstreams.local-vllm.base_url: environment variable MISSING is not set
sluice.yaml:12:17 models.chat-a.targets[0].upstream: the upstream 'local-vlm' is not configured; did you mean 'local-vllm'?`);
  });

  test.each([
    [{ limit: "{}" }, "limit: unknown key; did you mean 'limits'?"],
    [{ http: "{ bodyLimit: 1MiB }" }, "http.bodyLimit: unknown key; did you mean 'body_limit'?"],
    [
      { streams: "{ keep_alive: chunks }" },
      "must be one of: comment, chunk, off; did you mean 'chunk'?",
    ],
    [{ streams: "{ zzzzzzzz: 1 }" }, "streams.zzzzzzzz: unknown key"],
  ])("gets a suggestion where %j is close to a known name", (sections, message) => {
    expect(refuse(fileText(sections))).toEndWith(message);
  });

  test("is refused for white space around a model's identifier", () => {
    for (const model of [" a", "a ", "a\\n"]) {
      const targets = `targets: [{ upstream: local-vllm, model: "${model}" }]`;
      const chat = `{ kind: chat, context_window: 2000, ${targets} }`;
      expect(refuse(fileText({ models: `{ chat-a: ${chat} }` }))).toContain(
        "targets[0].model: must not begin or end with white space",
      );
    }
  });

  test("gets the unknown key and the kind of model", () => {
    expect(refuse(chatModel("fan_out: 2"))).toContain("models.chat-a.fan_out: unknown key");
    expect(refuse(chatModel("max_outputtokens: 2"))).toContain("did you mean 'max_output_tokens'?");
  });

  test("gets a suggestion for a misspelt key of an upstream", () => {
    expect(refuse(upstream("timeouts: { firstbyte: 1s }"))).toContain(
      "upstreams.local-vllm.timeouts.firstbyte: unknown key; did you mean 'first_byte'?",
    );
  });

  test.each([
    [{ listen: "{ data: '::1:8080' }" }, "must be host:port"],
    [{ listen: "{ data: '[1.2]:8080' }" }, "must be host:port"],
    [{ listen: "{ data: '127.0.0.1:65536' }" }, "must be host:port"],
    [{ listen: "{ data: '127.0.0.1:81', admin: '127.0.0.1:81' }" }, "must differ from listen.data"],
    [{ storage: "{ url: 'postgres://user:geheim@db' }" }, "must be postgres://USER:PASSWORD@HOST"],
    [{ storage: "{ url: 'postgres:db' }" }, "must be postgres://USER:PASSWORD@HOST"],
    [{ storage: "{ url: 'postgres://user:pa/ss#w@rd@db/sluice' }" }, "as %2F %23 %3F %25 %40"],
    [{ storage: "{ url: 'mysql:x' }" }, "must be sqlite:PATH"],
    [{ storage: "{ url: 'sqlite://data/x.db' }" }, "without slashes before the path"],
    [{ storage: "{ url: 'sqlite:' }" }, "must name a file"],
    [
      { limits: "{ store: 'valkey://10.0.0.1,10.0.0.2' }" },
      "must be valkey://USER:PASSWORD@HOST:PORT/DATABASE",
    ],
    [{ limits: "{ store: disk }" }, "must be memory"],
    [{ processes: "0" }, "processes: must be at least 1"],
    [{ processes: "many" }, "processes: must be auto or a whole number from 1 to 64"],
    [{ limits: "{ default_output_tokens: 0 }" }, "must be at least 1"],
    [{ limits: "{ default_output_tokens: 1.5 }" }, "must be a whole number"],
    [{ http: "{ body_limit: 10MB }" }, "must be a size from 1KiB to 1GiB"],
    [{ http: "{ body_limit: 2GiB }" }, "must be a size from 1KiB to 1GiB"],
    [{ http: "{ body_limit: 64MiB }" }, "http.decompressed_limit: must not be smaller"],
    [{ http: "{ idle_timeout: 256s }" }, "must be a duration from 1s to 255s"],
    [{ http: "{ idle_timeout: 30 }" }, "must be a duration from 1s to 255s"],
    [
      { http: "{ allowed_origins: ['https://a.example/path'] }" },
      "allowed_origins[0]: must be '*'",
    ],
    [{ http: "" }, "http: is empty; give it a value or remove it"],
    [{ telemetry: "on" }, "telemetry: must be a map of keys and values"],
    [{ auth: "{ peppers: [short] }" }, "auth.peppers[0]: must have at least 32 characters"],
    [
      { image_fetch: "{ allowed_hosts: ['images.example.com:80'] }" },
      "image_fetch.allowed_hosts[0]: must be a host name without port",
    ],
    [{ image_fetch: "{ timeout: 2m }" }, "must be a duration from 100ms to 1m"],
    [{ environments: "[]" }, "environments: must have at least 1 item"],
    [{ upstreams: "{}" }, "must have at least one upstream"],
    [{ plans: "{ p: { requests_per_minute: 5 } }" }, "plans.p.tokens_per_minute: is required"],
    [
      { plans: "{ p: { custom: true, tokens_per_minute: 5 } }" },
      "must not be set on a custom plan",
    ],
    [
      { plans: "{ pilot: { custom: true, tokens_per_minute: 5 } }" },
      "plans.pilot.tokens_per_minute: must not be set on a custom plan",
    ],
    [{ plans: "{ enterprise: { custom: false } }" }, "enterprise.tokens_per_minute: is required"],
    [{ plans: "{ enterprise: { tokens_per_minute: 5 } }" }, "requests_per_minute: is required"],
    [{ plans: "{ constructor: { idempotency: true } }" }, "requests_per_minute: is required"],
    [{ plans: "{ pilot: }" }, "plans.pilot: is empty; give it a value or remove it"],
    [{ plans: "{ pilot: 5 }" }, "plans.pilot: must be a map of keys and values"],
    [{ plans: "5" }, "plans: must be a map of keys and values"],
    [{ plans: "{ 'a b': { custom: true } }" }, "must be 1 to 64 letters"],
  ])("is refused for %j", (sections, message) => {
    expect(refuse(fileText(sections))).toContain(message);
  });

  test.each([
    ["api_key: 'two words'", "api_key: must be visible ASCII"],
    ["api_key_header: x-key", "must be one of: authorization, api-key"],
    ["headers: { Host: x }", "must not be a header that Sluice sets itself"],
    ["headers: { a: b, A: c }", "must not name a header twice"],
    ["headers: { 'a b': c }", "must be the name of a header"],
    ['headers: { a: "b\\nc" }', "must be printable ASCII"],
    ["api_key: k, headers: { Authorization: x }", "must not be set together with api_key"],
    ["embedding_encoding: hex", "must be one of: auto, as_sent, float, base64"],
    ["max_in_flight: 0", "must be at least 1"],
    ["timeouts: { total: 25h }", "must be a duration from 10ms to 24h"],
    ["timeouts: { total: '-1s' }", "must be a duration from 10ms to 24h"],
  ])("is refused for an upstream with %s", (fields, message) => {
    expect(refuse(upstream(fields))).toContain(message);
  });

  test.each([
    "ftp://h/v1",
    "http://",
    "http://user:secret@h/v1",
    "http://h/v1?key=secret",
    "http://h:99999/v1",
    "h:8000",
  ])("is refused for the base URL %s, without quoting its secrets", (url) => {
    const message = refuse(
      fileText({ upstreams: `{ local-vllm: { kind: openai, base_url: '${url}' } }` }),
    );
    expect(message).toContain("base_url: must be an http:// or https:// URL");
    expect(message).not.toContain("secret");
  });

  test.each([
    ["max_output_tokens: 2001", "must not be larger than context_window"],
    ["created: 2025-02-30", "must be a date such as 2025-05-14, or Unix seconds"],
    ["created: yesterday", "must be a date such as 2025-05-14, or Unix seconds"],
  ])("is refused for a chat model with %s", (fields, message) => {
    expect(refuse(chatModel(fields))).toContain(message);
  });

  test("is refused for a model without targets, or with one target twice", () => {
    const targets = (list: string) =>
      fileText({ models: `{ chat-a: { kind: chat, context_window: 9, targets: ${list} }}` });
    expect(refuse(targets("[]"))).toContain("targets: must have at least 1 item");
    expect(
      refuse(targets("[{ upstream: local-vllm, model: a }, { upstream: local-vllm, model: a }]")),
    ).toContain("models.chat-a.targets[1]: repeats targets[0]");
  });

  const pooled = (...targets: readonly string[]): string => {
    const written = targets.map((fields, index) => {
      const target = `{ upstream: local-vllm, ${fields} }`;
      return `chat-${index}: { kind: chat, context_window: 2000, targets: [${target}] }`;
    });
    return fileText({
      environments: "[{ name: p, hosts: ['*'], models: ['*'] }]",
      pools: "{ p: { tokens_per_minute: 100000 }, q: { tokens_per_minute: 100000 } }",
      models: `{ ${written.join(", ")} }`,
    });
  };

  test.each([
    ["model: a, pool: p", "model: a, pool: q", "[0].pool: has", "names another pool"],
    ["model: a, pool: p", "model: a", "[0]: has", "names another pool"],
    ["model: a", "model: a, pool: p", "[0].pool: has", "names no pool"],
  ])("may not sell one capacity twice: %p beside %p", (one, other, position, what) => {
    const problem = refuse(pooled(one, other));
    expect(problem).toContain("1 problem");
    expect(problem).toContain(
      `models.chat-1.targets${position} the same upstream and model as models.chat-0.targets[0], ` +
        `which ${what}: the same capacity would be sold twice; let both name the same pool`,
    );
  });

  test("may name one capacity at several models when all name its pool", () => {
    const targets = ["model: a, pool: p", "model: a, pool: p", "model: b, pool: q", "model: c"];
    expect(refuse(pooled(...targets))).toBe("no problems");
  });

  test.each([
    [
      "name: p, hosts: [b], models: ['*']",
      "environments[1].name: the name 'p' is taken by environments[0]",
    ],
    [
      "name: q, hosts: ['*'], models: ['*']",
      "environments[1].hosts[0]: the host '*' is taken by environments[0]",
    ],
    [
      "name: q, hosts: [A.example], models: ['*']",
      "hosts[0]: the host 'a.example' is taken by environments[0]",
    ],
    ["name: q, hosts: ['b:80'], models: ['*']", "must be a host name without port"],
    [
      "name: q, hosts: [b], models: ['*', chat-a]",
      "'*' means all models and must be the only item",
    ],
    [
      "name: q, hosts: [b], models: [chat-a, chat-a]",
      "models[1]: the model 'chat-a' is in the list twice",
    ],
  ])("is refused for a second environment with %s", (fields, message) => {
    const first = "{ name: p, hosts: ['*', a.example], models: ['*'] }";
    expect(refuse(fileText({ environments: `[${first}, { ${fields} }]` }))).toContain(message);
  });

  test("never gets a value quoted in a problem", () => {
    const secret = "sk-very-secret";
    const texts = [
      upstream("api_key: '${KEY} x'"),
      upstream("api_key: [ '${KEY}' ]"),
      upstream("max_in_flight: ${KEY}"),
      upstream("timeouts: ${KEY}"),
      upstream("api_key:sk-very-secret"),
      upstream("api_key: *sk-very-secret"),
      upstream("api_key: !sk-very-secret x"),
      upstream("api_key: x]sk-very-secret"),
      upstream('api_key: "\\sk-very-secret"'),
      fileText({ auth: "{ peppers: ['${KEY}'] }" }),
      fileText({ storage: "{ url: '${KEY}' }" }),
      fileText({ listen: "{ data: '${KEY}' }" }),
      fileText({ telemetry: "{ log_level: '${KEY}' }" }),
      secret,
    ];
    for (const text of texts) {
      const message = refuse(text, { KEY: secret });
      expect(message).toContain("problem");
      expect(message).not.toContain("very");
    }
  });

  test("is refused for a missing space between a key and its value", () => {
    expect(refuse(upstream("api_key:sk-1"))).toContain(
      'upstreams.local-vllm."api_key...": unknown key; write a space after its colon',
    );
  });
});
