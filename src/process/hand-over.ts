import { chmodSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../domain/clock.ts";
import type { GivenLimits, LimitsNote, OwnLimits } from "./own-limits.ts";

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
  readonly onGiven: (isGiven: boolean) => void;
  readonly onFailed: (error: unknown) => void;
}

/** JSON has no infinity: it writes null. */
const limit = z
  .number()
  .nullable()
  .transform((value) => value ?? Number.POSITIVE_INFINITY);
const unit = z.literal(["requests", "tokens"]);

const limitScopeSchema = z.object({
  id: z.string(),
  unit,
  window: z.union([z.literal("minute"), z.object({ seconds: z.number() })]),
  limit,
  isShared: z.boolean().optional(),
  owner: z.string().optional(),
  isClosedAlone: z.boolean().optional(),
  overrunFactor: limit.optional(),
});

const scopeUseSchema = z.object({
  scope: z.object({ id: z.string(), unit, seconds: z.number() }),
  slot: z.number(),
  amounts: z.array(z.number()),
  debt: z.number(),
  limit,
});

/** Reads a state that was written as JSON. */
const limitsStateSchema = z.object({
  now: z.number(),
  uses: z.array(scopeUseSchema),
  calls: z.array(
    z.object({
      callId: z.string(),
      scopes: z.array(limitScopeSchema),
      tokens: z.number(),
      mostTokens: z.number().optional(),
      slot: z.number(),
      charged: z.number(),
    }),
  ),
});

const givenSchema = z.object({
  state: limitsStateSchema,
  givers: z.array(z.record(z.string(), z.number())),
});

const callTokens = z.tuple([z.string(), z.number()]);
const noteSchema = z.union([
  z.object({ use: callTokens }),
  z.object({ settle: callTokens }),
  z.object({ uncount: z.object({ scopes: z.array(limitScopeSchema), slot: z.number() }) }),
  z.object({ include: z.array(scopeUseSchema) }),
]) satisfies z.ZodType<LimitsNote>;

/** Reads limits that were written as JSON. Throws for anything else. */
export function parseGivenLimits(value: unknown): GivenLimits {
  return givenSchema.parse(value);
}

/** Longest wait for the process before, which may have ended. */
const answerLimitMs = 2_000;

/** Takes the limits of the process before, if there is one, and offers them to the next. */
export class HandOver {
  readonly #options: HandOverOptions;
  readonly #path: string;
  readonly #stopping = new AbortController();
  #server: Bun.Server<undefined> | undefined;
  #receiver: Receiver | undefined;
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
      const given: unknown = JSON.parse(String(first.value));
      limits.goOn(parseGivenLimits(given), 0);
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
      rmSync(this.#path, { force: true });
      this.#server = Bun.serve({
        unix: this.#path,
        fetch: ({ method, signal }) =>
          method === "POST" && this.#receiver === undefined
            ? this.#give(signal)
            : new Response(null, { status: 409 }),
      });
      chmodSync(this.#path, 0o600);
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
      });
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
        if (line === "") continue;
        const note = noteSchema.parse(JSON.parse(line));
        limits.hear(note);
        isComplete = "include" in note;
      }
    } catch (error) {
      if (!this.#stopping.signal.aborted) onFailed(error);
    }
    if (isComplete) limits.giversEnded();
    else limits.giversLost();
  }

  #give(signal: AbortSignal): Response {
    const { limits, onGiven } = this.#options;
    const receiver = new Receiver(this.#options.clock);
    this.#receiver = receiver;
    receiver.write(limits.give((note) => receiver.write(note)));
    // The successor listens here for its own.
    void this.#server?.stop(false);
    onGiven(true);
    signal.addEventListener("abort", () => this.#lost());
    return new Response(receiver.body, { headers: { "content-type": "application/x-ndjson" } });
  }

  /** A successor that could not start gives everything back. */
  #lost(): void {
    if (this.#isLeaving) return;
    const { limits, onGiven } = this.#options;
    this.#receiver = undefined;
    limits.takeBack();
    onGiven(false);
    this.offer();
  }
}

/** The runtime ends an answer that has been silent for ten seconds. */
const signOfLifeMs = 4_000;

/** The answer to a successor. */
class Receiver {
  readonly body: ReadableStream<Uint8Array>;
  readonly #clock: Clock;
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => {
        this.#controller = undefined;
      },
    });
    this.#live();
  }

  write(value: GivenLimits | LimitsNote): void {
    this.#send(`${JSON.stringify(value)}\n`);
  }

  close(): void {
    this.#controller?.close();
    this.#controller = undefined;
  }

  #live(): void {
    this.#clock.schedule(() => {
      if (this.#controller === undefined) return;
      this.#send("\n");
      this.#live();
    }, signOfLifeMs);
  }

  #send(text: string): void {
    this.#controller?.enqueue(this.#encoder.encode(text));
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
