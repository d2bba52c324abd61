/** Where the demo keeps its state. */
export const demoDataDir = "./data/demo";

export interface DemoOptions {
  readonly simulator: DemoSimulator;
  readonly dataDir: string;
  /** As host:port. */
  readonly listenData: string;
  readonly listenAdmin: string;
}

/**
 * Address of the built-in simulator for Bedrock's wire format, and a credential that it accepts.
 */
export interface DemoSimulator {
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** The configuration without a file: every alias, served by the built-in simulator. */
export function demoConfigText(options: DemoOptions): string {
  const { endpoint, region, accessKeyId, secretAccessKey } = options.simulator;
  return `listen: { data: ${quote(options.listenData)}, admin: ${quote(options.listenAdmin)} }
storage: { url: ${quote(`sqlite:${options.dataDir}/sluice.db`)} }
data_dir: ${quote(options.dataDir)}
telemetry: { log_level: warn }
shutdown: { pre_stop: 0s }
environments:
  - { name: local, hosts: ["*"], models: ["*"] }
upstreams:
  simulator:
    kind: bedrock
    region: ${quote(region)}
    endpoint: ${quote(endpoint)}
    access_key_id: ${quote(accessKeyId)}
    secret_access_key: ${quote(secretAccessKey)}
models:
${demoModels.map(formatModel).join("")}`;
}

interface DemoModel {
  readonly alias: string;
  readonly kind: "chat" | "embedding";
  /** The provider's identifier; the simulator imitates the abilities of the real model. */
  readonly model: string;
  readonly contextWindow: number;
  readonly maxOutputTokens?: number;
  readonly created: string;
}

/** Some aliases are served by the successor of a retired model. */
const demoModels: readonly DemoModel[] = [
  {
    alias: "alpha-sonnet-4",
    kind: "chat",
    model: "us.anthropic.claude-sonnet-4-6",
    contextWindow: 1_000_000,
    maxOutputTokens: 128_000,
    created: "2026-02-17",
  },
  {
    alias: "alpha-haiku-3.5",
    kind: "chat",
    model: "us.anthropic.claude-haiku-4-5-20251001-v1:0",
    contextWindow: 200_000,
    maxOutputTokens: 64_000,
    created: "2025-10-01",
  },
  {
    alias: "alpha-sonnet-3.5",
    kind: "chat",
    model: "us.anthropic.claude-sonnet-4-6",
    contextWindow: 200_000,
    maxOutputTokens: 64_000,
    created: "2026-02-17",
  },
  {
    alias: "beta-3-70b",
    kind: "chat",
    model: "us.meta.llama3-3-70b-instruct-v1:0",
    contextWindow: 128_000,
    maxOutputTokens: 4096,
    created: "2024-12-19",
  },
  {
    alias: "beta-3-405b",
    kind: "chat",
    model: "us.meta.llama4-maverick-17b-instruct-v1:0",
    contextWindow: 1_000_000,
    maxOutputTokens: 8192,
    created: "2025-04-28",
  },
  {
    alias: "gamma-8x7b",
    kind: "chat",
    model: "mistral.mixtral-8x7b-instruct-v0:1",
    contextWindow: 32_768,
    maxOutputTokens: 4096,
    created: "2023-12-11",
  },
  {
    alias: "gamma-large",
    kind: "chat",
    model: "mistral.mistral-large-2402-v1:0",
    contextWindow: 32_768,
    maxOutputTokens: 8192,
    created: "2024-04-02",
  },
  {
    alias: "embed-text-v2",
    kind: "embedding",
    model: "amazon.titan-embed-text-v2:0",
    contextWindow: 8192,
    created: "2024-04-30",
  },
];

function formatModel(model: DemoModel): string {
  const output =
    model.maxOutputTokens === undefined ? "" : `\n    max_output_tokens: ${model.maxOutputTokens}`;
  return `  ${model.alias}:
    kind: ${model.kind}
    context_window: ${model.contextWindow}${output}
    created: ${model.created}
    targets:
      - { upstream: simulator, model: ${quote(model.model)} }
`;
}

/** JSON text is YAML; a `${` in the value is escaped, because it is not a variable. */
function quote(value: string): string {
  return JSON.stringify(value).replaceAll("${", "$$${");
}
