import { startGateway, type TestGateway } from "../support/gateway.ts";
import type { Provider } from "./provider.ts";

/** A whole answer of Converse with these blocks. */
export function converse(...content: readonly object[]): Response {
  return Response.json({
    output: { message: { role: "assistant", content } },
    stopReason: "end_turn",
    usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
  });
}

export interface BedrockGatewayOptions {
  /** The provider's identifier. */
  readonly model?: string;
  /** Further fields of the upstream. */
  readonly upstream?: string;
  readonly sections?: Readonly<Record<string, string>>;
}

/** A gateway whose `chat-model` is a model of an upstream `aws` of kind `bedrock`. */
export function bedrockGatewayOf(
  { url }: Pick<Provider, "url">,
  options: BedrockGatewayOptions = {},
): Promise<TestGateway> {
  const { model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0", upstream = "" } = options;
  const endpoint = `kind: bedrock, region: us-east-1, endpoint: "${new URL(url).origin}"`;
  return startGateway({
    kind: "bedrock",
    sections: {
      upstreams: `
  aws: { ${endpoint}, api_key: "k"${upstream && `, ${upstream}`} }`,
      models: `
  chat-model:
    kind: chat
    context_window: 32000
    targets: [{ upstream: aws, model: "${model}" }]`,
      ...options.sections,
    },
  });
}
