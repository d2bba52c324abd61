import { Secret } from "../../src/domain/keys/secret.ts";
import type { AdapterServices, UpstreamAdapter } from "../../src/upstreams/adapter.ts";
import { createBedrockAdapter } from "../../src/upstreams/bedrock/adapter.ts";
import { createOpenAiAdapter } from "../../src/upstreams/openai/adapter.ts";
import type { UpstreamPlan } from "./scenario.ts";
import type { ProcessClock } from "./virtual-time.ts";

/** The real adapter for an upstream of a run. */
export function makeAdapter(plan: UpstreamPlan, clock: ProcessClock): UpstreamAdapter {
  let toolCalls = 0;
  const services: AdapterServices = {
    clock,
    newToolCallId: () => `call_${(toolCalls += 1)}`,
    onTrouble: () => undefined,
  };
  return plan.kind === "bedrock" ? bedrock(plan, services) : openAiDialect(plan, services);
}

function bedrock({ name }: UpstreamPlan, services: AdapterServices): UpstreamAdapter {
  return createBedrockAdapter(
    {
      region: "us-east-1",
      endpoint: `http://${name}.sim`,
      service: "runtime",
      useFips: false,
      credentials: {
        source: "static",
        accessKeyId: "AKIDEXAMPLE",
        secretAccessKey: new Secret("secret of the simulation"),
        sessionToken: undefined,
      },
      countsTokens: false,
      families: {},
      models: new Map(),
    },
    services,
  );
}

function openAiDialect(
  { name, embeddingBatchLimit }: UpstreamPlan,
  services: AdapterServices,
): UpstreamAdapter {
  return createOpenAiAdapter(
    {
      baseUrl: `http://${name}.sim/v1`,
      apiKey: undefined,
      apiKeyHeader: "authorization",
      headers: {},
      query: {},
      forwardFields: [],
      dropFields: [],
      entra: undefined,
      quirks: new Set(),
      maxTokensField: "as_sent",
      instructionRole: "as_sent",
      flattenTextParts: false,
      streamUsage: true,
      sessionCacheKey: false,
      takesTokenIds: false,
      embeddingBatchLimit,
      embeddingEncoding: "as_sent",
    },
    services,
  );
}
