import type { StreamFrames } from "./bodies.ts";
import { RequestReader, type UpstreamRequest } from "./request-reader.ts";

/** Whole responses, head and body, as they go to the wire. */
export interface PreparedAnswers {
  readonly chat: Buffer;
  readonly embeddings: Buffer;
  readonly streamHead: string;
  readonly frames: StreamFrames;
}

/** The part of a socket that is written to. */
interface Output {
  /** How many bytes were taken; fewer than given when the buffers of the system are full. */
  write(bytes: string | Buffer): number;
}

/** One connection of a gateway: answers what is asked, and streams one write a chunk. */
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
    if (path.endsWith("/embeddings")) this.#send(this.#answers.embeddings);
    else if (body.includes('"stream":true')) this.#stream(readPace(body));
    else this.#send(this.#answers.chat);
  }

  #stream({ chunks, pauseMs }: Pace): void {
    const { streamHead, frames } = this.#answers;
    this.#send(Buffer.from(streamHead + chunk(frames.first)));
    const text = Buffer.from(chunk(frames.text));
    const startedAt = performance.now();
    let sent = 0;
    const next = (): void => {
      this.#send(text);
      sent += 1;
      if (sent === chunks) {
        this.#send(Buffer.from(`${chunk(frames.last)}0\r\n\r\n`));
        return;
      }
      // Against the start, so that late timers do not add up.
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

interface Pace {
  readonly chunks: number;
  readonly pauseMs: number;
}

/** The caller says in the request's `user` field how it wants to be answered. */
function readPace(body: Buffer): Pace {
  const match = /"user":"chunks=(\d+),pauseMs=(\d+)"/.exec(body.toString("latin1"));
  return { chunks: Number(match?.[1] ?? 1), pauseMs: Number(match?.[2] ?? 1) };
}

function chunk(frame: string): string {
  return `${frame.length.toString(16)}\r\n${frame}\r\n`;
}
