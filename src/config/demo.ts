export interface DemoOptions {
  /** Base URL of the simulator's OpenAI-compatible API. */
  readonly simulatorUrl: string;
  readonly dataDir: string;
  /** As host:port. */
  readonly listenData: string;
  readonly listenAdmin: string;
}

/** The configuration of a start without a file: every alias, served by the built-in simulator. */
export function demoConfigText(options: DemoOptions): string {
  return `listen: { data: ${quote(options.listenData)}, admin: ${quote(options.listenAdmin)} }
storage: { url: ${quote(`sqlite:${options.dataDir}/sluice.db`)} }
data_dir: ${quote(options.dataDir)}
environments:
  - { name: local, hosts: ["*"], models: ["*"] }
upstreams:
  simulator: { kind: openai, base_url: ${quote(options.simulatorUrl)} }
models:
${demoModels.map(formatModel).join("")}`;
}

interface DemoModel {
  readonly alias: string;
  readonly kind: "chat" | "embedding";
  readonly contextWindow: number;
  readonly maxOutputTokens?: number;
  readonly created: string;
}

const demoModels: readonly DemoModel[] = [
  {
    alias: "alpha-sonnet-4",
    kind: "chat",
    contextWindow: 200_000,
    maxOutputTokens: 64_000,
    created: "2025-05-14",
  },
  {
    alias: "alpha-haiku-3.5",
    kind: "chat",
    contextWindow: 200_000,
    maxOutputTokens: 8192,
    created: "2024-10-22",
  },
  {
    alias: "alpha-sonnet-3.5",
    kind: "chat",
    contextWindow: 200_000,
    maxOutputTokens: 8192,
    created: "2024-06-20",
  },
  {
    alias: "beta-3-70b",
    kind: "chat",
    contextWindow: 128_000,
    maxOutputTokens: 8192,
    created: "2024-07-23",
  },
  {
    alias: "beta-3-405b",
    kind: "chat",
    contextWindow: 128_000,
    maxOutputTokens: 8192,
    created: "2024-07-23",
  },
  {
    alias: "gamma-8x7b",
    kind: "chat",
    contextWindow: 32_768,
    maxOutputTokens: 4096,
    created: "2023-12-11",
  },
  {
    alias: "gamma-large",
    kind: "chat",
    contextWindow: 128_000,
    maxOutputTokens: 8192,
    created: "2024-07-24",
  },
  { alias: "embed-text-v2", kind: "embedding", contextWindow: 8192, created: "2024-04-30" },
];

function formatModel(model: DemoModel): string {
  const output =
    model.maxOutputTokens === undefined ? "" : `\n    max_output_tokens: ${model.maxOutputTokens}`;
  return `  ${model.alias}:
    kind: ${model.kind}
    context_window: ${model.contextWindow}${output}
    created: ${model.created}
    targets:
      - { upstream: simulator, model: ${quote(model.alias)} }
`;
}

/** JSON text is YAML; a `${` of the value must not be taken for a variable. */
function quote(value: string): string {
  return JSON.stringify(value).replaceAll("${", "$$${");
}
