import { eventFrame, exceptionFrame } from "../../simulator/bedrock/event-frames.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import {
  anthropicUpstream,
  bedrockUpstream,
  simulatorUpstream,
  startGateway,
  type TestGateway,
  type ChatKind,
} from "../support/gateway.ts";

/** What the clients of every language are tested against. */
export interface SdkGateway extends AsyncDisposable {
  readonly kind: ChatKind;
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
export async function startSdkGateway(kind: ChatKind): Promise<SdkGateway> {
  const breaking = startBreakingUpstream(kind);
  const simulator = startSimulator();
  const gateway = await startGateway({
    sections: { ...sections(kind), upstreams: upstreams(kind, simulator, breaking) },
  });
  const { id, text: revoked } = await gateway.createKey();
  await gateway.admin("DELETE", `/admin/v1/keys/${id}`);
  const limited = async (requestsPerMinute: number, tokensPerMinute: number): Promise<string> => {
    const limits = { requestsPerMinute, tokensPerMinute };
    return (await gateway.createKey({ plan: "enterprise", limits })).text;
  };
  return {
    kind,
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

function sections(kind: ChatKind): Record<string, string> {
  // With a family, the adapter knows what the simulator's models can do.
  const facts = (family: string): string =>
    kind === "openai" ? "" : `, ${kind}: { family: ${family} }`;
  const chat = (upstream: string, model: string): string =>
    `{ kind: chat, context_window: 200000, max_output_tokens: 64000, ` +
    `targets: [{ upstream: ${upstream}, model: ${model}${facts("claude-4")} }] }`;
  const embedding = kind === "bedrock" ? "amazon.titan-embed-text-v2:0" : "simulated-embedding";
  const embeddings = kind === "anthropic" ? "text-only" : "simulator";
  return {
    http: `{ body_limit: 1MiB, decompressed_limit: 1MiB }`,
    environments: `
  - { name: test, hosts: ["*"], models: ["*"] }
  - { name: other, hosts: [other.example.com], models: ["*"] }`,
    models: `
  chat-model: ${chat("simulator", "simulated-chat")}
  reasoning-model: ${chat("simulator", "simulated-reasoning")}
  vendor/chat:8b: ${chat("simulator", "simulated-chat")}
  small-model: ${chat("simulator", "simulated-ctx32").replaceAll(/\b(200000|64000)\b/g, "32")}
  throttled-model: ${chat("simulator", "fault-throttle-429")}
  overloaded-model: ${chat("simulator", "fault-overloaded-503")}
  failing-model: ${chat("simulator", "fault-error-500")}
  stalling-model: ${chat("simulator", "fault-stall-mid")}
  unreachable-model: ${chat("unreachable", "none")}
  breaking-model: ${chat("breaking", "none")}
  embedding-model:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: ${embeddings}, model: ${embedding} }]
  text-embedding-model:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: text-only, model: ${embedding} }]`,
  };
}

function upstreams(kind: ChatKind, simulator: Simulator, breaking: Bun.Server<undefined>): string {
  const at = (origin: string): string =>
    ({
      openai: `{ kind: openai, base_url: "${origin}/v1" }`,
      bedrock: bedrockUpstream(origin),
      anthropic: anthropicUpstream(origin),
    })[kind];
  const textOnly =
    kind === "bedrock"
      ? bedrockUpstream(simulator.origin)
      : `{ kind: openai, base_url: "${simulator.url}", takes_token_ids: false }`;
  return `
  simulator: ${simulatorUpstream(simulator, kind)}
  text-only: ${textOnly}
  breaking: ${at(`http://127.0.0.1:${breaking.port}`)}
  unreachable: ${at("http://127.0.0.1:9")}`;
}

/** Sends one piece of text and, when that is surely on its way to the caller, an error. */
function startBreakingUpstream(kind: ChatKind): Bun.Server<undefined> {
  const { contentType, pieces } = breakingStreams[kind];
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () =>
      new Response(
        async function* body() {
          yield pieces[0];
          await Bun.sleep(250);
          yield pieces[1];
        },
        { headers: { "content-type": contentType } },
      ),
  });
}

interface BreakingStream {
  readonly contentType: string;
  readonly pieces: readonly [string | Uint8Array, string | Uint8Array];
}

const breakingStreams: Readonly<Record<ChatKind, BreakingStream>> = {
  openai: {
    contentType: "text/event-stream",
    pieces: [
      `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":null}]}\n\n`,
      `data: {"error":{"message":"The engine is overloaded","type":"server_error"}}\n\n`,
    ],
  },
  anthropic: {
    contentType: "text/event-stream",
    pieces: [
      `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}\n\n`,
      `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n`,
    ],
  },
  bedrock: {
    contentType: "application/vnd.amazon.eventstream",
    pieces: [
      eventFrame(
        "contentBlockDelta",
        JSON.stringify({ contentBlockIndex: 0, delta: { text: "Hello" } }),
      ),
      exceptionFrame(
        "serviceUnavailableException",
        JSON.stringify({
          message: "Bedrock is unable to process your request.",
        }),
      ),
    ],
  },
};
