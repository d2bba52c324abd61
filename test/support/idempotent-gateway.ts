import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Database } from "bun:sqlite";
import { startGateway, type GatewayOptions, type TestGateway } from "./gateway.ts";

/** Plans whose answers are kept, and one whose answers are not. */
const plans = `
  enterprise: { custom: true, provisioned: true, idempotency: true }
  few-requests: { requests_per_minute: 3, tokens_per_minute: 1000000, idempotency: true }
  few-tokens: { requests_per_minute: 100, tokens_per_minute: 60, idempotency: true }
  without: { requests_per_minute: 1000000, tokens_per_minute: 1000000 }`;

/** A gateway that keeps answers, in a database whose file a test can read. */
export interface IdempotentGateway extends AsyncDisposable {
  readonly gateway: TestGateway;
  readonly folder: string;
  readonly path: string;
  /** Requests that reached the upstream. */
  readonly upstreamCalls: () => number;
  /** Rows of answers in the database. */
  readonly keptAnswers: () => number;
  /** A call with an `Idempotency-Key`. */
  send(key: string, body: unknown, more?: SentCall): Promise<Response>;
}

export interface SentCall {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export async function startIdempotentGateway(
  options: GatewayOptions & { readonly folder?: string } = {},
): Promise<IdempotentGateway> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), "sluice-idempotency-"));
  const path = join(folder, "sluice.db");
  const storage = `{ url: "sqlite:${path}" }`;
  const gateway = await startGateway({
    ...options,
    sections: { storage, plans, ...options.sections },
  });
  return {
    gateway,
    folder,
    path,
    upstreamCalls: () => gateway.simulator.truth.size,
    keptAnswers() {
      using database = new Database(path, { readonly: true });
      const counted = database.query<{ rows: number }, []>(
        "SELECT count(*) AS rows FROM call_replies",
      );
      return counted.get()?.rows ?? 0;
    },
    send(key, body, { path: called = "/v1/chat/completions", headers, signal } = {}) {
      const init = { headers: { "idempotency-key": key, ...headers } };
      return gateway.post(called, body, signal === undefined ? init : { ...init, signal });
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function chat(content: string, fields: Readonly<Record<string, unknown>> = {}) {
  return { model: "chat-model", messages: [{ role: "user", content }], ...fields };
}

export function streamedChat(content: string, fields: Readonly<Record<string, unknown>> = {}) {
  return chat(content, { stream: true, ...fields });
}

/** Waits without a time limit of its own. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`it never happened: ${what}`);
    await Bun.sleep(2);
  }
}

/** A streamed answer that the test reads step by step. */
export class StreamedAnswer {
  readonly headers: Headers;
  text = "";
  readonly #reader: Pick<ReadableStreamDefaultReader<Uint8Array>, "read">;
  readonly #decoder = new TextDecoder();

  constructor(response: Response) {
    if (response.body === null) throw new Error("the answer has no body");
    this.headers = response.headers;
    this.#reader = response.body.getReader();
  }

  /** Reads until it has so many frames. */
  async readFrames(count: number): Promise<void> {
    while (this.text.split("\n\n").length <= count) {
      if (!(await this.#readSome())) throw new Error(`the stream ended after ${this.text}`);
    }
  }

  async readAll(): Promise<string> {
    while (await this.#readSome());
    return this.text;
  }

  async #readSome(): Promise<boolean> {
    const { done, value } = await this.#reader.read();
    if (value !== undefined) this.text += this.#decoder.decode(value, { stream: true });
    return !done;
  }
}
