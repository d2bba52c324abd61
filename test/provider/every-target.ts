import {
  chatServers,
  demoApiKey,
  startSimulator,
  type Simulator,
} from "../../simulator/simulator.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/**
 * One alias for each API that a target can have, and for each server that Sluice knows by its profile, all played by
 * one simulator. Their models think.
 */
export interface EveryTarget extends AsyncDisposable {
  readonly simulator: Simulator;
  readonly gateway: TestGateway;
}

const bedrock = (model: string, api: string): string =>
  `{ upstream: aws, model: ${model}, bedrock: { api: ${api} } }`;

const apis = {
  "openai-chat": "{ upstream: local, model: reason-m }",
  "openai-responses": "{ upstream: local, model: reason-m, openai: { api: responses } }",
  "anthropic-messages": "{ upstream: claude, model: claude-sonnet-4-6 }",
  "bedrock-converse": bedrock("us.anthropic.claude-sonnet-4-6", "converse"),
  "bedrock-messages": bedrock("us.anthropic.claude-sonnet-4-6", "messages"),
  "bedrock-openai-chat": bedrock("openai.gpt-6-sol", "openai-chat"),
  "bedrock-openai-responses": bedrock("openai.gpt-6-sol", "openai-responses"),
};

export const profileNames = Object.keys(chatServers.profiles);
export const apiNames: readonly string[] = Object.keys(apis);

export async function startEveryTarget(): Promise<EveryTarget> {
  const simulator = startSimulator();
  const { origin, url } = simulator;
  const ofProfiles = profileNames.map((name) => [
    name,
    `{ upstream: ${name}, model: profile-${name}-reason }`,
  ]);
  const models = [...Object.entries(apis), ...ofProfiles].flatMap(([alias, target]) => [
    `\n  ${alias}: { kind: chat, context_window: 1000000, targets: [${target}] }`,
  ]);
  const vectors = ["local", ...profileNames].map(
    (name) =>
      `\n  ${name}-vectors: { kind: embedding, context_window: 8192, targets: [{ upstream: ${name}, model: profile-${name} }] }`,
  );
  const gateway = await startGateway({
    sections: {
      upstreams: `
  local: { kind: openai, base_url: "${url}" }
  claude: { kind: anthropic, base_url: "${origin}", api_key: k }
  aws: { kind: bedrock, region: us-east-1, endpoint: "${origin}", api_key: "${demoApiKey}" }${profileNames
    .map((name) => `\n  ${name}: { kind: openai, profile: ${name}, base_url: "${url}" }`)
    .join("")}`,
      models: `${models.join("")}${vectors.join("")}
  aws-vectors: { kind: embedding, context_window: 8192, targets: [{ upstream: aws, model: "amazon.titan-embed-text-v2:0" }] }`,
    },
  });
  return {
    simulator,
    gateway,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await simulator[Symbol.asyncDispose]();
    },
  };
}
