import { anthropicUpstream, bedrockUpstream, type ChatKind } from "../support/gateway.ts";

/** A provider of each kind that answers "ok" and notes what it was sent. */
export class NotingProvider implements AsyncDisposable {
  /** The last body; empty: none since it was cleared. */
  received = "";
  readonly #server: Bun.Server<undefined>;

  constructor() {
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        this.received = await request.text();
        return Response.json(answers[new URL(request.url).pathname] ?? converse);
      },
    });
  }

  /** An upstream of the kind, in YAML's short form; `more` are further settings. */
  upstream(kind: ChatKind, more = ""): string {
    const { origin } = this.#server.url;
    switch (kind) {
      case "openai":
        return `{ kind: openai, base_url: "${origin}/v1", ${more} }`;
      case "anthropic":
        return anthropicUpstream(origin, more);
      case "bedrock":
        return bedrockUpstream(origin, more);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

const counts = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const answers: Readonly<Record<string, object>> = {
  "/v1/chat/completions": {
    id: "c",
    object: "chat.completion",
    model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
    usage: counts,
  },
  "/v1/embeddings": {
    object: "list",
    data: [{ object: "embedding", index: 0, embedding: [0.5] }],
    usage: counts,
  },
  "/v1/messages": {
    id: "msg_1",
    type: "message",
    content: [{ type: "text", text: "ok" }],
    stop_reason: "end_turn",
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  "/v1/messages/count_tokens": { input_tokens: 7 },
};

const converse = {
  output: { message: { role: "assistant", content: [{ text: "ok" }] } },
  stopReason: "end_turn",
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
};
