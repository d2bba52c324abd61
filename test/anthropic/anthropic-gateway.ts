import {
  startSimulator,
  type Simulator,
  type SimulatorOptions,
} from "../../simulator/simulator.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

export const apiKey = "sk-ant-api03-simulated";

export interface AnthropicGateway extends AsyncDisposable {
  readonly gateway: TestGateway;
  /** The provider. */
  readonly api: Simulator;
}

/** A gateway with an upstream of kind `anthropic`; each model is an alias of its own name. */
export async function startAnthropicGateway(options: {
  readonly models: readonly string[];
  readonly upstream?: string;
  readonly target?: string;
  readonly simulator?: SimulatorOptions;
}): Promise<AnthropicGateway> {
  const { models, upstream = "", target = "" } = options;
  const api = startSimulator({ apiKeys: [apiKey], ...options.simulator });
  const aliases = models.map(
    (model) => `
  ${model}:
    kind: chat
    context_window: 1000000
    max_output_tokens: 128000
    targets: [{ upstream: claude, model: ${model}${target} }]`,
  );
  const gateway = await startGateway({
    sections: {
      upstreams: `
  claude: { kind: anthropic, base_url: "${api.origin}", api_key: "${apiKey}"${upstream} }`,
      models: aliases.join(""),
    },
  });
  return {
    gateway,
    api,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await api[Symbol.asyncDispose]();
    },
  };
}
