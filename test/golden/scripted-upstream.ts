import { startGateway, type TestGateway } from "../support/gateway.ts";

/** Something to write, or something to wait for before the next piece is written. */
export type Piece = string | Uint8Array | Promise<unknown>;

/** What the upstream answers next: a recorded body, in the pieces it is written in. */
export interface ScriptedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly pieces: readonly Piece[];
}

/** A gateway with an upstream behind it that says, byte for byte, what a test tells it to. */
export class ScriptedUpstream implements AsyncDisposable {
  readonly gateway: TestGateway;
  readonly #server: Bun.Server<undefined>;
  #script: Script;

  private constructor(gateway: TestGateway, server: Bun.Server<undefined>, script: Script) {
    this.gateway = gateway;
    this.#server = server;
    this.#script = script;
  }

  /** `sections` are those of the configuration that a test is about, `settings` the upstream's. */
  static async start(
    kind: "openai" | "bedrock" = "openai",
    sections: Readonly<Record<string, string>> = {},
    settings = "",
  ): Promise<ScriptedUpstream> {
    const script: Script = { answer: { pieces: [] }, requests: [] };
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch(request) {
        script.requests.push((await request.json()) as Record<string, unknown>);
        return toResponse(script.answer);
      },
    });
    const { upstream, chat, embedding } = parts[kind];
    const targets = (model: string): string => `[{ upstream: scripted, model: "${model}" }]`;
    const gateway = await startGateway({
      sections: {
        upstreams: `
  scripted: { ${upstream(`http://127.0.0.1:${server.port}`)}, ${settings} }`,
        models: `
  chat-model: { kind: chat, context_window: 8192, targets: ${targets(chat)} }
  embedding-model: { kind: embedding, context_window: 8192, targets: ${targets(embedding)} }`,
        ...sections,
      },
    });
    return new ScriptedUpstream(gateway, server, script);
  }

  /** Bodies that the upstream was sent, oldest first. */
  get requests(): readonly Readonly<Record<string, unknown>>[] {
    return this.#script.requests;
  }

  /** What the upstream answers from now on. */
  answerWith(answer: ScriptedAnswer): void {
    this.#script.answer = answer;
  }

  /** Sends a chat request that the upstream answers as told. */
  chat(answer: ScriptedAnswer, request: object = {}): Promise<Response> {
    this.answerWith(answer);
    const messages = [{ role: "user", content: "Hello" }];
    return this.gateway.post("/v1/chat/completions", { model: "chat-model", messages, ...request });
  }

  embed(answer: ScriptedAnswer, request: object): Promise<Response> {
    this.answerWith(answer);
    return this.gateway.post("/v1/embeddings", { model: "embedding-model", ...request });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway[Symbol.asyncDispose]();
    await this.#server.stop(true);
  }
}

/** What the configuration says of the upstream and its models, by kind. */
const parts = {
  openai: {
    upstream: (origin: string) => `kind: openai, base_url: "${origin}/v1"`,
    chat: "scripted-model",
    embedding: "scripted-model",
  },
  bedrock: {
    upstream: (origin: string) =>
      `kind: bedrock, region: us-east-1, endpoint: "${origin}", ` +
      `access_key_id: AKIDSCRIPTED, secret_access_key: scripted`,
    chat: "us.anthropic.claude-sonnet-4-20250514-v1:0",
    embedding: "amazon.titan-embed-text-v2:0",
  },
};

interface Script {
  answer: ScriptedAnswer;
  readonly requests: Record<string, unknown>[];
}

function toResponse({ status = 200, headers, pieces }: ScriptedAnswer): Response {
  const body = new ReadableStream({
    async start(controller) {
      for (const piece of pieces) {
        if (piece instanceof Promise) await piece;
        else controller.enqueue(typeof piece === "string" ? Buffer.from(piece) : piece);
        // A turn of the loop, so that pieces are written one by one.
        await new Promise((resolve) => setImmediate(resolve));
      }
      controller.close();
    },
  });
  return new Response(body, {
    status,
    headers: { "content-type": "application/json", ...headers },
  });
}

export const jsonAnswer = (body: unknown, status = 200): ScriptedAnswer => ({
  status,
  pieces: [typeof body === "string" ? body : JSON.stringify(body)],
});

/** A stream of chunks as `data:` events, closed by `[DONE]`. */
export function streamAnswer(...chunks: readonly object[]): ScriptedAnswer {
  const events = [...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"];
  return rawStream(...events.map((event) => `data: ${event}\n\n`));
}

export const rawStream = (...pieces: readonly Piece[]): ScriptedAnswer => ({
  headers: { "content-type": "text/event-stream" },
  pieces,
});

/** A chunk with one choice, with the envelope that every server sends. */
export function chunk(delta: unknown, finishReason: string | null = null, rest: object = {}) {
  return {
    id: "chatcmpl-upstream",
    object: "chat.completion.chunk",
    created: 1727346172,
    model: "scripted-model",
    choices: [{ index: 0, delta, finish_reason: finishReason }],
    ...rest,
  };
}

/** A whole answer with one choice. */
export function completion(message: object, finishReason: unknown = "stop", rest: object = {}) {
  return {
    id: "chatcmpl-upstream",
    object: "chat.completion",
    created: 1727346172,
    model: "scripted-model",
    choices: [
      { index: 0, message: { role: "assistant", ...message }, finish_reason: finishReason },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    ...rest,
  };
}
