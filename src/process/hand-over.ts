import { rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../domain/clock.ts";
import type { LimitsState } from "../store/limits/memory/limit-store.ts";
import type { ChargedScopes, GivenLimits, LimitsNote, OwnLimits } from "./own-limits.ts";
import { serveUnix } from "./unix-server.ts";
import type { ScopeUse } from "../store/limits/window.ts";

/**
 * A process that keeps the limits in its memory gives them to its successor over a Unix socket in
 * the data directory: one answer of HTTP, a line of JSON with all limits, then a line for each note
 * about the calls that it still runs, until it ends.
 */

export interface HandOverOptions {
  readonly dataDir: string;
  readonly limits: OwnLimits;
  readonly clock: Clock;
  /** Called when the limits have been given away, and when they are back. */
  readonly onGiven: () => void;
  readonly onFailed: (error: unknown) => void;
}

/** What may differ from another version of the program: the rest is read as it was written. */
const givenSchema = z.object({
  state: z.object({
    now: z.number(),
    uses: z.array(z.custom<ScopeUse>()),
    calls: z.array(z.custom<LimitsState["calls"][number]>()),
  }),
  givers: z.array(z.custom<ChargedScopes>()),
  spend: z.custom<GivenLimits["spend"]>().optional(),
});

const noteShape = z.custom<LimitsNote>();

/** Reads limits that were written as JSON. Throws for anything else. */
export function parseGivenLimits(text: string): GivenLimits {
  return givenSchema.parse(parseLimits(text));
}

/** JSON has no infinity: it writes null, which stands for nothing else here. */
function parseLimits(text: string): unknown {
  return JSON.parse(text, (_, value: unknown) => (value === null ? Infinity : value));
}

/** Longest wait for the process before, which may have ended. */
const answerLimitMs = 2_000;

/** Takes the limits of the process before, if there is one, and offers them to the next. */
export class HandOver {
  readonly #options: HandOverOptions;
  readonly #path: string;
  readonly #stopping = new AbortController();
  #server: Bun.Server<undefined> | undefined;
  /** The answer to a successor. */
  #receiver: { close(): unknown } | undefined;
  #isLeaving = false;

  constructor(options: HandOverOptions) {
    this.#options = options;
    this.#path = join(options.dataDir, "limits.sock");
  }

  /** Resolves to whether another process has given its limits. Never rejects. */
  async take(): Promise<boolean> {
    const { limits, onFailed } = this.#options;
    const lines = await this.#ask();
    if (lines === undefined) return false;
    try {
      const first = await lines.next();
      limits.goOn(parseGivenLimits(String(first.value)), 0);
    } catch (error) {
      onFailed(error);
      return false;
    }
    void this.#follow(lines);
    return true;
  }

  /** Gives the limits to a successor that asks. Never throws. */
  offer(): void {
    try {
      this.#server = serveUnix({
        path: this.#path,
        // The answer lasts as long as this process.
        isUntimed: true,
        fetch: ({ method, signal }) =>
          method === "POST" && this.#receiver === undefined
            ? this.#give(signal)
            : new Response(null, { status: 409 }),
      });
    } catch (error) {
      this.#options.onFailed(error);
    }
  }

  /** From now on the successor has the limits, whatever happens to it. */
  leave(): void {
    this.#isLeaving = true;
  }

  /** Called when all calls are settled. */
  async stop(): Promise<void> {
    this.#isLeaving = true;
    this.#stopping.abort();
    this.#options.limits.end();
    this.#receiver?.close();
    const isUnasked = this.#receiver === undefined;
    await this.#server?.stop(isUnasked);
    if (isUnasked && this.#server !== undefined) rmSync(this.#path, { force: true });
  }

  async #ask(): Promise<AsyncGenerator<string> | undefined> {
    const { clock } = this.#options;
    const asking = new AbortController();
    const stopTimer = clock.schedule(() => asking.abort(), answerLimitMs);
    const signal = AbortSignal.any([asking.signal, this.#stopping.signal]);
    try {
      const answer = await fetch("http://sluice/limits", {
        unix: this.#path,
        method: "POST",
        signal,
        timeout: false,
      } as RequestInit);
      return answer.ok && answer.body !== null ? linesOf(answer.body) : undefined;
    } catch {
      // Nobody listens there.
      return undefined;
    } finally {
      stopTimer();
    }
  }

  async #follow(lines: AsyncGenerator<string>): Promise<void> {
    const { limits, onFailed } = this.#options;
    let isComplete = false;
    try {
      for await (const line of lines) {
        const note = noteShape.parse(parseLimits(line));
        limits.hear(note);
        isComplete = "include" in note;
      }
    } catch (error) {
      if (!this.#stopping.signal.aborted) onFailed(error);
    }
    if (this.#stopping.signal.aborted) return;
    if (isComplete) limits.giversEnded();
    else limits.giversLost();
  }

  #give(signal: AbortSignal): Response {
    const { limits, onGiven } = this.#options;
    const encoder = new TextEncoder();
    let isOpen = true;
    const body = new ReadableStream<Uint8Array>({
      start: (receiver) => {
        const write = (value: GivenLimits | LimitsNote): void => {
          if (isOpen) receiver.enqueue(encoder.encode(`${JSON.stringify(value)}\n`));
        };
        this.#receiver = { close: () => isOpen && receiver.close() };
        write(limits.give(write));
      },
      cancel() {
        isOpen = false;
      },
    });
    // The successor listens here for its own.
    void this.#server?.stop(false);
    onGiven();
    signal.addEventListener("abort", () => this.#lost());
    return new Response(body, { headers: { "content-type": "application/x-ndjson" } });
  }

  /** A successor that could not start gives everything back. */
  #lost(): void {
    if (this.#isLeaving) return;
    const { limits, onGiven } = this.#options;
    this.#receiver = undefined;
    limits.takeBack();
    onGiven();
    this.offer();
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
