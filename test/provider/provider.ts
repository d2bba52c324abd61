import { startGateway, type GatewayOptions, type TestGateway } from "../support/gateway.ts";

/** A request as the provider got it. */
export interface ProviderRequest {
  readonly path: string;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; undefined if it is none. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Aborts when the gateway disconnects. */
  readonly signal: AbortSignal;
}

export type ProviderAnswer = Response | Promise<Response>;

/** A real HTTP server that answers as the test says, and keeps what it was asked. */
export interface Provider extends AsyncDisposable {
  /** Ends with `/v1`. */
  readonly url: string;
  readonly requests: readonly ProviderRequest[];
  /** Forgets the requests so far, and answers from now on with `answer`. */
  answers(answer: (request: ProviderRequest) => ProviderAnswer): void;
}

export function startProvider(
  answer: (request: ProviderRequest) => ProviderAnswer = () => whole("Hello"),
): Provider {
  let current = answer;
  const requests: ProviderRequest[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const text = await request.text();
      const asked = {
        path: new URL(request.url).pathname,
        headers: request.headers,
        text,
        body: parsed(text),
        signal: request.signal,
      };
      requests.push(asked);
      return current(asked);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    requests,
    answers(next) {
      requests.length = 0;
      current = next;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return {};
  }
}

/** A `chat.completion` with this text, or these fields in place of it. */
export function completion(content: string, fields: object = {}): object {
  return {
    id: "chatcmpl-provider",
    object: "chat.completion",
    created: 1,
    model: "provider-model",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
    ...fields,
  };
}

/** The same as an answer. */
export function whole(content: string, fields: object = {}): Response {
  return Response.json(completion(content, fields));
}

/** A `chat.completion.chunk` of the first choice. */
export function chunk(delta: object, choice: object = {}, fields: object = {}): object {
  return {
    id: "chatcmpl-provider",
    object: "chat.completion.chunk",
    created: 1,
    model: "provider-model",
    choices: [{ index: 0, delta, finish_reason: null, ...choice }],
    ...fields,
  };
}

/** A chunk that has only usage. */
export function usageChunk(usage: object): object {
  return { ...chunk({}), choices: [], usage };
}

/** A stream of these chunks. It ends with `[DONE]` unless `end` is another text. */
export function streamed(chunks: readonly object[], end = "data: [DONE]\n\n"): Response {
  const frames = chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`);
  return new Response(frames.join("") + end, { headers: { "content-type": "text/event-stream" } });
}

/** A stream of one text with its end. */
export function streamedText(...texts: readonly string[]): Response {
  return streamed([
    ...texts.map((content) => chunk({ content })),
    chunk({}, { finish_reason: "stop" }),
    usageChunk({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }),
  ]);
}

/**
 * A gateway whose `chat-model` and `embedding-model` are served by these providers, the first one
 * first; an upstream of kind `openai` each, named `provider-1` and so on. `upstream`: further fields
 * of each upstream; `model`: of each model. The rest is as for `startGateway`.
 */
export async function gatewayOf(
  providers: readonly Pick<Provider, "url">[],
  { upstream = "", model = "", ...options }: ProviderGatewayOptions = {},
): Promise<TestGateway> {
  const names = providers.map((_, index) => `provider-${index + 1}`);
  const upstreams = providers.map(
    ({ url }, index) =>
      `\n  ${names[index]}: { kind: openai, base_url: "${url}"${upstream && `, ${upstream}`} }`,
  );
  const targets = names.map(
    (name, index) => `{ upstream: ${name}, model: provider-model, priority: ${index + 1} }`,
  );
  const more = model && `\n    ${model}`;
  return startGateway({
    ...options,
    sections: {
      upstreams: upstreams.join(""),
      models: `
  chat-model:
    kind: chat
    context_window: 200000
    max_output_tokens: 64000
    targets: [${targets.join(", ")}]${more}
  embedding-model:
    kind: embedding
    context_window: 8192
    targets: [${targets.join(", ")}]${more}`,
      ...options.sections,
    },
  });
}

export interface ProviderGatewayOptions extends GatewayOptions {
  readonly upstream?: string;
  readonly model?: string;
}

/** A list of embeddings; numbers, or their base64 as a text. */
export function vectorsAnswer(vectors: readonly unknown[], fields: object = {}): Response {
  const data = vectors.map((embedding, index) => ({ object: "embedding", index, embedding }));
  const usage = { prompt_tokens: vectors.length, total_tokens: vectors.length };
  return Response.json({ object: "list", data, model: "provider-model", usage, ...fields });
}

/** Base64 of these numbers as little-endian floats. */
export function floatsInBase64(numbers: readonly number[]): string {
  return Buffer.from(new Float32Array(numbers).buffer).toString("base64");
}

/** The inputs of a request for embeddings. */
export function inputsOf({ body }: ProviderRequest): readonly unknown[] {
  const { input } = body;
  return Array.isArray(input) ? input : [input];
}
