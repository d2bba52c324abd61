import type { ChatFamily } from "../../src/upstreams/bedrock/models/facts.ts";
import { demoConfigText } from "../../src/config/demo.ts";
import { converseFamilies, identifiers } from "../support/bedrock-identifiers.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { z } from "zod";

/**
 * What agents are run against: the chat aliases of the demo, which here drop what their models do not
 * have, and a model of each family that Converse serves, which drops nothing, under its family's name.
 */
export interface AgentGateway extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly baseUrl: string;
}

export async function startAgentGateway(): Promise<AgentGateway> {
  const models = { ...demoModels, ...Object.fromEntries(converseFamilies.map(familyModel)) };
  const gateway = await startGateway({
    kind: "bedrock",
    sections: { models: JSON.stringify(models) },
  });
  return {
    gateway,
    baseUrl: `${gateway.url}/v1`,
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

/** Where an agent's program finds the gateway, and its key. */
export function agentEnvironment({ gateway, baseUrl }: AgentGateway): Record<string, string> {
  return {
    SLUICE_BASE_URL: baseUrl,
    SLUICE_UPSTREAM_KIND: "bedrock",
    SLUICE_KEY: gateway.key,
  };
}

const demoSchema = z.object({
  models: z.record(
    z.string(),
    z.looseObject({
      kind: z.enum(["chat", "embedding"]),
      targets: z.array(z.looseObject({})),
    }),
  ),
});

const demoModels = readDemoModels();

/** Every chat alias of the demo. */
export const demoAliases = Object.entries(demoModels)
  .filter(([, { kind }]) => kind === "chat")
  .map(([alias]) => alias);

function readDemoModels() {
  const simulator = {
    endpoint: "http://127.0.0.1",
    region: "us-east-1",
    accessKeyId: "",
    secretAccessKey: "",
  };
  const listen = "127.0.0.1:0";
  const options = { simulator, dataDir: "data", listenData: listen, listenAdmin: listen };
  const { models } = demoSchema.parse(Bun.YAML.parse(demoConfigText(options)));
  return Object.fromEntries(
    Object.entries(models).map(([alias, { kind, targets, ...rest }]) => {
      const bedrock = kind === "chat" ? { bedrock: { drop_unsupported: true } } : {};
      return [alias, { ...rest, kind, targets: targets.map((one) => ({ ...one, ...bedrock })) }];
    }),
  );
}

function familyModel(family: ChatFamily): [string, object] {
  const target = { upstream: "simulator", model: identifiers[family], bedrock: { family } };
  return [family, { kind: "chat", context_window: 32_000, targets: [target] }];
}
