import { oneTurnBytes } from "../domain/waiting/wait.ts";
import { eventStream } from "../edge/replies/event-stream.ts";
import type { ModelKind } from "../domain/model.ts";
import type { Peppers } from "../domain/keys/peppers.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import type { Reply } from "../edge/replies/error-reply.ts";
import { resolveModel } from "../snapshot/call.ts";
import {
  type KeptAnswer,
  lastingHeaders,
  type OpenedAnswer,
  piecesOf,
  type StreamedAnswer,
} from "./answer.ts";
import { nameCall, type AllRequestNames, type RepeatMark } from "./request-names.ts";
import { type Claim, Claims, type ClaimsServices } from "./claims.ts";
import { KeptAnswers, type KeptAnswersServices } from "./kept-answers.ts";
import { AnswerMemory, KeptFrames } from "./kept-frames.ts";

export type RepeatableCallsServices = Omit<KeptAnswersServices, "memory"> &
  Omit<ClaimsServices, "kept"> & {
    readonly peppers: Peppers;
    /** How long the reader of a long answer may leave a piece of it unread. */
    readonly writeTimeoutMs: () => number;
  };

export interface AskedCall {
  readonly call: KeyCall;
  /** The same for all variants of its path. */
  readonly endpoint: string;
  /** The kind of model that the endpoint accepts. */
  readonly kind: ModelKind;
  readonly alias: string;
  /** Undefined: the answer is not kept. */
  readonly mark: RepeatMark | undefined;
}

export type Repeats = Pick<RepeatableCalls, "whole" | "streamed">;

interface MarkedCall extends AskedCall {
  readonly names: AllRequestNames;
}

/**
 * Makes a call once for all requests of one key with one `Idempotency-Key`: a repeat waits for the
 * first call and gets the answer that was kept. Other calls, and calls on plans that are not
 * idempotent, pass unchanged.
 */
export class RepeatableCalls {
  readonly #services: RepeatableCallsServices;
  readonly #memory: AnswerMemory;
  readonly #kept: KeptAnswers;
  readonly #claims: Claims;

  constructor(services: RepeatableCallsServices) {
    this.#services = services;
    this.#memory = new AnswerMemory(() => services.settings().memoryLimitBytes);
    this.#kept = new KeptAnswers({ ...services, memory: this.#memory });
    this.#claims = new Claims({ ...services, kept: this.#kept });
  }

  /** `run` makes the call. Throws `GatewayError`. */
  whole(asked: AskedCall, run: () => Promise<Reply>): Promise<Reply> {
    const marked = this.#mark(asked);
    if (marked === undefined) return run();
    return this.#once(marked, async (claim) => {
      const reply = await run();
      const { names, call } = marked;
      const { accountId } = call.caller.key;
      await this.#kept.keep({ names, accountId, claim, answer: this.#textOf(reply) });
      return reply;
    });
  }

  /** `run` opens the stream of the call, and `write` makes its reply. Throws `GatewayError`. */
  async streamed(
    asked: AskedCall,
    run: () => Promise<OpenedAnswer>,
    write: (answer: StreamedAnswer) => Reply,
  ): Promise<Reply> {
    const marked = this.#mark(asked);
    if (marked === undefined) return write(await run());
    return this.#once(marked, async (claim) => write(this.#keepFrames(marked, claim, await run())));
  }

  /** Stores the waiting answers. Call it when no call is running, before the store is closed. */
  async close(): Promise<void> {
    await this.#claims.close();
    await this.#kept.close();
  }

  async #once(marked: MarkedCall, make: (claim: Claim) => Promise<Reply>): Promise<Reply> {
    const taken = await this.#claims.take(marked.names, marked.call);
    if ("answer" in taken) return this.#replay(marked, taken.answer);
    try {
      return await make(taken.claim);
    } catch (error) {
      taken.claim.release();
      throw error;
    }
  }

  #mark(asked: AskedCall): MarkedCall | undefined {
    const { call, endpoint, mark } = asked;
    if (mark === undefined) return undefined;
    const { capacity } = call.options;
    const { id: keyId } = call.caller.key;
    return {
      ...asked,
      names: nameCall({ ...mark, keyId, endpoint, capacity }, this.#services.peppers),
    };
  }

  /** A long stream must not keep the request of its call in memory. */
  #keepFrames(
    { call, names }: MarkedCall,
    claim: Claim,
    { frames: source, ...answer }: OpenedAnswer,
  ): StreamedAnswer {
    const { signal, caller } = call;
    const { accountId } = caller.key;
    const headers = lastingHeaders(answer.headers);
    const frames = new KeptFrames({
      source,
      signal,
      limitBytes: this.#services.settings().answerLimitBytes,
      memory: this.#memory,
      keep: (text) => {
        const kept = text === undefined ? undefined : { headers, text };
        return this.#kept.keep({ names, accountId, claim, answer: kept });
      },
      onFailed: () => claim.release(),
    });
    return { ...answer, frames };
  }

  /** Undefined if it is too large to be kept. */
  #textOf({ headers, body }: Reply): KeptAnswer | undefined {
    if (typeof body !== "string" && !(body instanceof Uint8Array)) return undefined;
    const { answerLimitBytes: limitBytes } = this.#services.settings();
    // Decoding a large body would take long.
    if (body.length > limitBytes) return undefined;
    const text = typeof body === "string" ? body : new TextDecoder().decode(body);
    if (Buffer.byteLength(text) > limitBytes) return undefined;
    return { headers: lastingHeaders(headers), text };
  }

  /** Sends a kept answer again. A long one is counted as memory until its caller has read it. */
  async #replay(marked: MarkedCall, answer: KeptAnswer): Promise<Reply> {
    const { headers: kept, text } = this.#shown(marked, answer);
    const headers = { ...kept, "idempotent-replayed": "true" };
    if (text.length <= oneTurnBytes) return { status: 200, headers, body: text };
    const { call } = marked;
    await call.answerMemory.reserve(Buffer.byteLength(text));
    const pieces = piecesOf(text, () => call.answerMemory.release());
    const body = eventStream(pieces, {
      clock: this.#services.clock,
      keepAliveMs: 0,
      keepAlive: () => "",
      beginsWithKeepAlive: false,
      writeTimeoutMs: this.#services.writeTimeoutMs(),
      onEnd: (end) => call.streamEnded(end),
    });
    return { status: 200, headers, body };
  }

  /**
   * The answer as the configuration allows it now. Throws 400 for a model that was removed since
   * the answer was kept.
   */
  #shown({ call, alias, kind }: MarkedCall, answer: KeptAnswer): KeptAnswer {
    resolveModel(call, alias, kind);
    this.#services.onAnswer("replayed");
    // Only the call itself has cost something.
    const { "x-sluice-target": target, "x-sluice-cost-usd": _, ...headers } = answer.headers;
    const isShown = target !== undefined && call.snapshot.routing.showsTarget;
    return { ...answer, headers: isShown ? { ...headers, "x-sluice-target": target } : headers };
  }
}
