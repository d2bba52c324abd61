/** One streamed answer whose events the test sends. */
export class ScriptedStream {
  readonly #controller: ReadableStreamDefaultController<Uint8Array>;
  isAborted = false;

  constructor(controller: ReadableStreamDefaultController<Uint8Array>) {
    this.#controller = controller;
  }

  text(content: string, index = 0): void {
    this.chunk({ choices: [{ index, delta: { role: "assistant", content } }] });
  }

  finish(index = 0): void {
    this.chunk({ choices: [{ index, delta: {}, finish_reason: "stop" }] });
  }

  usage(inputTokens: unknown = 90, outputTokens: unknown = 700): void {
    this.chunk({
      choices: [],
      usage: { prompt_tokens: inputTokens, completion_tokens: outputTokens },
    });
  }

  chunk(fields: object): void {
    this.#send(`data: ${JSON.stringify({ id: "c", model: "m", ...fields })}\n\n`);
  }

  end(): void {
    if (this.isAborted) return;
    this.#send("data: [DONE]\n\n");
    this.#controller.close();
  }

  #send(text: string): void {
    if (!this.isAborted) this.#controller.enqueue(new TextEncoder().encode(text));
  }
}

/** A real upstream whose streams the test writes. */
export class ScriptedUpstream {
  readonly #server: Bun.Server<undefined>;
  /** One for each request, in the order they came. */
  readonly streams: ScriptedStream[] = [];

  constructor(begin: (stream: ScriptedStream) => void = (stream) => stream.text("Hello")) {
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response(this.#open(begin), { headers }),
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/v1`;
  }

  /** The answer to the last request. */
  get last(): ScriptedStream {
    const stream = this.streams.at(-1);
    if (stream === undefined) throw new Error("the upstream was not asked");
    return stream;
  }

  async stop(): Promise<void> {
    await this.#server.stop(true);
  }

  #open(begin: (stream: ScriptedStream) => void): ReadableStream<Uint8Array> {
    let told: ScriptedStream | undefined;
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        told = new ScriptedStream(controller);
        this.streams.push(told);
        begin(told);
      },
      cancel: () => {
        if (told !== undefined) told.isAborted = true;
      },
    });
  }
}

const headers = { "content-type": "text/event-stream" };
