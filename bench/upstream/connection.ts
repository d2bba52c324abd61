import { RequestReader, type UpstreamRequest } from "./request-reader.ts";

/** Complete responses, head and body, as bytes of the wire, and the parts of streams. */
export interface PreparedAnswers {
  readonly chat: Buffer;
  /** For a request with tools. */
  readonly toolCall: Buffer;
  readonly chatStream: PreparedStream;
  readonly converse: Buffer;
  readonly converseStream: PreparedStream;
  readonly embeddings: Buffer;
}

/** Pieces of a stream, framed for a chunked body. */
export interface PreparedStream {
  /** The head of the response and the first piece. */
  readonly first: Buffer;
  readonly text: Buffer;
  /** The part after the text, and the end of the body. */
  readonly last: Buffer;
}

/** The writing side of a socket. */
interface Output {
  /** Returns the number of accepted bytes; fewer if the system's buffers are full. */
  write(bytes: string | Buffer): number;
}

/** One connection of a gateway: answers requests, and streams one chunk a write. */
export class UpstreamConnection {
  readonly #answers: PreparedAnswers;
  readonly #output: Output;
  readonly #reader = new RequestReader();
  #unsent: Buffer[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(answers: PreparedAnswers, output: Output) {
    this.#answers = answers;
    this.#output = output;
  }

  receive(bytes: Buffer): void {
    for (const request of this.#reader.push(bytes)) this.#answer(request);
  }

  drained(): void {
    const waiting = this.#unsent;
    this.#unsent = [];
    for (const bytes of waiting) this.#send(bytes);
  }

  closed(): void {
    clearTimeout(this.#timer);
  }

  #answer({ path, body }: UpstreamRequest): void {
    const { chat, toolCall, chatStream, converse, converseStream, embeddings } = this.#answers;
    if (path.endsWith("/embeddings")) this.#send(embeddings);
    else if (path.endsWith("/converse")) this.#send(converse);
    else if (path.endsWith("/converse-stream")) this.#stream(converseStream, readPace(body));
    else if (asksForStream(body)) this.#stream(chatStream, readPace(body));
    else this.#send(body.includes('"tools":') ? toolCall : chat);
  }

  #stream({ first, text, last }: PreparedStream, { chunks, pauseMs }: Pace): void {
    this.#send(first);
    const startedAt = performance.now();
    let sent = 0;
    const next = (): void => {
      this.#send(text);
      sent += 1;
      if (sent === chunks) {
        this.#send(last);
        return;
      }
      // Relative to the start, so that delays of timers do not add up.
      const waitMs = startedAt + (sent + 1) * pauseMs - performance.now();
      this.#timer = setTimeout(next, Math.max(0, waitMs));
    };
    this.#timer = setTimeout(next, pauseMs);
  }

  #send(bytes: Buffer): void {
    if (this.#unsent.length > 0) {
      this.#unsent.push(bytes);
      return;
    }
    const taken = this.#output.write(bytes);
    if (taken < bytes.length) this.#unsent.push(bytes.subarray(Math.max(0, taken)));
  }
}

/** Gateways write their own JSON, some with spaces. */
function asksForStream(body: Buffer): boolean {
  return body.includes('"stream":true') || body.includes('"stream": true');
}

interface Pace {
  readonly chunks: number;
  readonly pauseMs: number;
}

/** The caller's last message selects the answer. */
function readPace(body: Buffer): Pace {
  const match = /"chunks=(\d+),pauseMs=(\d+)"/.exec(body.toString("latin1"));
  return { chunks: Number(match?.[1] ?? 1), pauseMs: Number(match?.[2] ?? 1) };
}
