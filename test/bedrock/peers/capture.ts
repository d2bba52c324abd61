/** What one request sent to the provider. */
export interface SentRequest {
  /** With the identifier decoded. */
  readonly path: string;
  readonly body: unknown;
}

/** A stand-in for the provider: it keeps what it is sent, and answers "ok" to everything. */
export class Capture implements AsyncDisposable {
  readonly #server: Bun.Server<undefined>;
  #sent: SentRequest[] = [];

  constructor() {
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (request) => this.#keep(request),
    });
  }

  /** Without a slash behind. */
  get url(): string {
    return this.#server.url.origin;
  }

  /** What came since it was asked last. */
  take(): readonly SentRequest[] {
    const sent = this.#sent;
    this.#sent = [];
    return sent;
  }

  async #keep(request: Request): Promise<Response> {
    const path = decodeURIComponent(new URL(request.url).pathname);
    this.#sent.push({ path, body: await request.json() });
    if (!path.endsWith("/converse-stream")) return Response.json(wholeAnswer);
    // Nobody looks at the answer of a stream: what was sent is kept already.
    return Response.json({ message: "not here" }, { status: 400, headers: refusalHeaders });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

const wholeAnswer = {
  output: { message: { role: "assistant", content: [{ text: "ok" }] } },
  stopReason: "end_turn",
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  metrics: { latencyMs: 1 },
};

const refusalHeaders = { "x-amzn-errortype": "ValidationException" };
