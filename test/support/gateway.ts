import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureApplication, issueKey, type NewKey } from "./issue-key.ts";
import { readLocalAccess } from "../../src/control/sign-in/bootstrap/local-access.ts";
import { createApp, type AppOverrides } from "./app.ts";
import type { Config } from "../../src/config/config.ts";
import { formatProblems, parseConfig } from "../../src/config/load.ts";
import type { Clock } from "../../src/domain/clock.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import {
  demoCredentials,
  type Simulator,
  type SimulatorOptions,
  startSimulator,
} from "../../simulator/simulator.ts";
import { cheapPasswords } from "./cheap-passwords.ts";
import { createCluster, type TestApp } from "./cluster.ts";
import type { UpstreamKind as ConfiguredKind } from "../../src/upstreams/kind.ts";
import { noLog } from "../../src/telemetry/log/log-output.ts";

export const testPepper = "a pepper for tests that is long enough";

/** The kinds of upstream behind the aliases; callers must not see which it is. */
export const upstreamKinds = ["openai", "bedrock"] as const;
export type UpstreamKind = (typeof upstreamKinds)[number];

/** Those that serve chat; the others serve embeddings as well. */
export const chatKinds = [...upstreamKinds, "anthropic"] as const;
export type ChatKind = (typeof chatKinds)[number];

export interface GatewayOptions {
  /** The kind of the upstream `simulator`. Default `openai`. */
  readonly kind?: ChatKind;
  readonly simulator?: SimulatorOptions;
  /** Replaces the sections of the default test configuration that it names (see `baseSections`). */
  readonly sections?: Readonly<Record<string, string>>;
  readonly overrides?: AppOverrides;
  /** The kinds that a configuration may name, if not the built-in ones. */
  readonly kinds?: readonly ConfiguredKind[];
  readonly key?: WantedKey;
  /** As many beside control, joined by its socket. Default: everything is in one part. */
  readonly processes?: number;
  /** Of each of them. Default: that of the machine. */
  readonly clocks?: readonly Clock[];
}

/** The properties of a test's key; by default no limit applies to it. */
export interface WantedKey extends Partial<Omit<NewKey, "applicationId">> {
  readonly account?: string;
  readonly application?: string;
  readonly environment?: string;
}

export interface TestRequestInit extends Omit<RequestInit, "headers"> {
  readonly headers?: Readonly<Record<string, string>>;
}

/** A real gateway on free ports, a simulated provider behind it, and a key to call it with. */
export interface TestGateway extends AsyncDisposable {
  readonly app: TestApp;
  readonly simulator: Simulator;
  /** Without `/v1`. Of the next process, where there are several. */
  readonly url: string;
  readonly adminUrl: string;
  readonly port: number;
  readonly key: string;
  readonly config: Config;
  /** Lines of the log. */
  readonly log: readonly string[];
  createKey(wanted?: WantedKey): Promise<{ readonly id: string; readonly text: string }>;
  /** POST with JSON and the key. */
  post(path: string, body: unknown, init?: TestRequestInit): Promise<Response>;
  get(path: string, init?: TestRequestInit): Promise<Response>;
  /** A request of the control plane as the operator on this machine. */
  admin(method: string, path: string, body?: unknown): Promise<Response>;
  /** Rows of the ledger, newest first, after everything queued was written. */
  usage(): Promise<readonly UsageRecord[]>;
  /** Resolves when every process has it; at once where there is one. */
  reconfigure(sections: Readonly<Record<string, string>>): Promise<void>;
}

export async function startGateway(options: GatewayOptions = {}): Promise<TestGateway> {
  const { kind = "openai", processes } = options;
  const simulator = startSimulator(options.simulator);
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-test-"));
  const build = (sections: Readonly<Record<string, string>>): Config => {
    const base = baseSections(simulator, kind, dataDir);
    return parseTestConfig(
      {
        ...base,
        ...(processes !== undefined && { storage: `{ url: "sqlite:${dataDir}/sluice.db" }` }),
        processes: String(processes ?? 1),
        ...options.sections,
        ...sections,
      },
      options.kinds,
    );
  };
  const config = build({});
  const log: string[] = [];
  const sink = { ...noLog, write: (line: string): void => void log.push(line) };
  const passwords = cheapPasswords();
  const overrides = { log: sink, passwords, ...options.overrides };
  const app = await (processes === undefined
    ? createApp(config, overrides)
    : createCluster(config, overrides, options.clocks));
  const createKey: TestGateway["createKey"] = async (wanted = {}) => {
    const {
      account = "test-account",
      application = "test-application",
      environment = "test",
    } = wanted;
    const { id } = await ensureApplication(app.admin, { account, application, environment });
    const { account: _, application: __, environment: ___, ...settings } = wanted;
    const plan = wanted.plan ?? "enterprise";
    const limits = plan === "enterprise" ? unlimited : undefined;
    const issued = await issueKey(app.admin, { applicationId: id, limits, ...settings, plan });
    await app.admin.onKeysChanged();
    return { id: issued.key.id, text: issued.text };
  };
  const { text: key } = await createKey(options.key);
  const authorization = `Bearer ${key}`;
  return {
    app,
    simulator,
    get url() {
      return app.dataUrl;
    },
    adminUrl: app.adminUrl,
    get port() {
      return Number(new URL(app.dataUrl).port);
    },
    key,
    config,
    log,
    createKey,
    post: (path, body, init = {}) =>
      fetch(`${app.dataUrl}${path}`, {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...init,
        headers: { authorization, "content-type": "application/json", ...init.headers },
      }),
    get: (path, init = {}) =>
      fetch(`${app.dataUrl}${path}`, { ...init, headers: { authorization, ...init.headers } }),
    async admin(method, path, body) {
      const local = readLocalAccess(dataDir);
      return fetch(`${app.adminUrl}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${local?.token}`,
          ...(body !== undefined && { "content-type": "application/json" }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    },
    async usage() {
      await app.flushUsage();
      return listCalls(app);
    },
    reconfigure: async (sections) => app.reconfigure(build(sections)),
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await simulator[Symbol.asyncDispose]();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** For a key without effective limits. */
export const unlimited = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000 };

async function listCalls({ admin }: TestApp): Promise<readonly UsageRecord[]> {
  const calls: UsageRecord[] = [];
  let after: string | undefined;
  do {
    const filter = { since: 0, until: Number.MAX_SAFE_INTEGER };
    const page = await admin.reports.calls(filter, { limit: 500, after });
    calls.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return calls;
}

/** The configuration of an upstream that is the simulator; `more` are further fields. */
export function simulatorUpstream(simulator: Simulator, kind: ChatKind, more = ""): string {
  switch (kind) {
    case "openai":
      return `{ kind: openai, base_url: "${simulator.url}", ${more} }`;
    case "bedrock":
      return bedrockUpstream(simulator.origin, more);
    case "anthropic":
      return anthropicUpstream(simulator.origin, more);
  }
}

export function anthropicUpstream(baseUrl: string, more = ""): string {
  return `{ kind: anthropic, base_url: "${baseUrl}", api_key: simulated, ${more} }`;
}

/** The configuration of a Bedrock upstream that takes the simulator's credential. */
export function bedrockUpstream(endpoint: string, more = ""): string {
  const { accessKeyId, secretAccessKey } = demoCredentials;
  return (
    `{ kind: bedrock, region: us-east-1, endpoint: "${endpoint}", ` +
    `access_key_id: "${accessKeyId}", secret_access_key: "${secretAccessKey}", ${more} }`
  );
}

/**
 * One target in YAML. It names the family of models whose identifier does not contain it, for the
 * adapters that need it.
 */
export function targetAt(
  kind: ChatKind,
  target: Readonly<Record<"model" | "family", string>>,
  more = "upstream: simulator",
): string {
  const facts = kind === "openai" ? "" : `, ${kind}: { family: ${target.family} }`;
  return `{ model: ${target.model}${facts}, ${more} }`;
}

/**
 * Default retries, but many: tests fail more calls at the same targets than any caller does. Tests
 * of budgets and of targets that go out set their own.
 */
const manyRetries =
  "{ retry_floor: 1000, first_backoff: 1ms, longest_backoff: 1ms, " +
  "out: { failures: 1000, least_attempts: 1000000 } }";

/** Top-level sections of the YAML file by key; replace those a test is about. */
function baseSections(
  simulator: Simulator,
  kind: ChatKind,
  dataDir: string,
): Record<string, string> {
  const chat = targetAt(kind, { model: "simulated-chat", family: "claude-4" });
  const embedding =
    kind === "anthropic"
      ? "{ model: simulated-embedding, upstream: embeddings }"
      : targetAt(kind, { model: "simulated-embedding", family: "titan-embed-v2" });
  return {
    listen: `{ data: "127.0.0.1:0", admin: "127.0.0.1:0" }`,
    storage: `{ url: "sqlite::memory:" }`,
    data_dir: JSON.stringify(dataDir),
    shutdown: "{ pre_stop: 0s }",
    routing: manyRetries,
    // Tests share the event loop of the gateway, and the machine with each other.
    overload: "{ loop_delay: 10s }",
    auth: `{ peppers: [${JSON.stringify(testPepper)}] }`,
    telemetry: `{ log_level: debug, log_format: json }`,
    environments: `
  - { name: test, hosts: ["*"], models: ["*"] }`,
    upstreams: `
  simulator: ${simulatorUpstream(simulator, kind)}
  embeddings: { kind: openai, base_url: "${simulator.url}" }`,
    models: `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [${chat}]
  embedding-model:
    kind: embedding
    context_window: 8192
    targets: [${embedding}]`,
  };
}

function parseTestConfig(
  sections: Readonly<Record<string, string>>,
  kinds?: readonly ConfiguredKind[],
): Config {
  const text = Object.entries(sections)
    .map(([name, section]) => `${name}: ${section}\n`)
    .join("");
  const result = parseConfig(text, { name: "test", env: {} }, kinds);
  if (!result.ok) throw new Error(formatProblems("test", result.problems));
  return result.config;
}
