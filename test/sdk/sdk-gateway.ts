import { startSimulator, type Simulator } from "../../src/simulator/simulator.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** What the clients of every language are tested against. */
export interface SdkGateway extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly simulator: Simulator;
  /** As an application configures it. */
  readonly baseUrl: string;
  readonly keys: {
    readonly valid: string;
    readonly revoked: string;
    readonly otherEnvironment: string;
    /** Two requests a minute. */
    readonly fewRequests: string;
    /** 2000 tokens a minute. */
    readonly fewTokens: string;
  };
}

/** A gateway with a model for each thing that can happen, and a key for each plan. */
export async function startSdkGateway(): Promise<SdkGateway> {
  const breaking = startBreakingUpstream();
  const simulator = startSimulator();
  const gateway = await startGateway({
    sections: sections(simulator.url, `http://127.0.0.1:${breaking.port}/v1`),
  });
  const { id, text: revoked } = await gateway.createKey();
  await gateway.app.keys.revoke(id, Date.now());
  await gateway.app.reloadKeys();
  const limited = async (requestsPerMinute: number, tokensPerMinute: number): Promise<string> => {
    const limits = { requestsPerMinute, tokensPerMinute };
    return (await gateway.createKey({ plan: "enterprise", limits })).text;
  };
  return {
    gateway,
    simulator,
    baseUrl: `${gateway.url}/v1`,
    keys: {
      valid: gateway.key,
      revoked,
      otherEnvironment: (await gateway.createKey({ environment: "other" })).text,
      fewRequests: await limited(2, 1_000_000),
      fewTokens: await limited(1_000, 2_000),
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await simulator[Symbol.asyncDispose]();
      await breaking.stop(true);
    },
  };
}

function sections(simulatorUrl: string, breakingUrl: string): Record<string, string> {
  const chat = (upstream: string, model: string): string =>
    `{ kind: chat, context_window: 200000, max_output_tokens: 64000, ` +
    `targets: [{ upstream: ${upstream}, model: ${model} }] }`;
  return {
    http: `{ body_limit: 1MiB, decompressed_limit: 1MiB }`,
    environments: `
  - { name: test, hosts: ["*"], models: ["*"] }
  - { name: other, hosts: [other.example.com], models: ["*"] }`,
    models: `
  chat-model: ${chat("simulator", "simulated-chat")}
  reasoning-model: ${chat("simulator", "simulated-reasoning")}
  vendor/chat:8b: ${chat("simulator", "simulated-chat")}
  small-model: ${chat("simulator", "simulated-ctx32")}
  throttled-model: ${chat("simulator", "fault-throttle-429")}
  overloaded-model: ${chat("simulator", "fault-overloaded-503")}
  failing-model: ${chat("simulator", "fault-error-500")}
  stalling-model: ${chat("simulator", "fault-stall-mid")}
  unreachable-model: ${chat("unreachable", "none")}
  breaking-model: ${chat("breaking", "none")}
  embedding-model:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: simulator, model: simulated-embedding }]
  text-embedding-model:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: text-only, model: simulated-embedding }]`,
    upstreams: `
  simulator: { kind: openai, base_url: "${simulatorUrl}" }
  text-only: { kind: openai, base_url: "${simulatorUrl}", takes_token_ids: false }
  breaking: { kind: openai, base_url: "${breakingUrl}" }
  unreachable: { kind: openai, base_url: "http://127.0.0.1:9/v1" }`,
  };
}

/** Sends one piece of text and, when that is surely on its way to the caller, an error. */
function startBreakingUpstream(): Bun.Server<undefined> {
  const delta = { role: "assistant", content: "Hello" };
  const first = { choices: [{ index: 0, delta, finish_reason: null }] };
  const error = { message: "The engine is overloaded", type: "server_error" };
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response(
        async function* body() {
          yield `data: ${JSON.stringify(first)}\n\n`;
          await Bun.sleep(250);
          yield `data: ${JSON.stringify({ error })}\n\n`;
        },
        { headers: { "content-type": "text/event-stream" } },
      ),
  });
}
