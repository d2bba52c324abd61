import type { Clock } from "../domain/clock.ts";
import type { ModelKind } from "../domain/model.ts";
import { keepAliveComment } from "../edge/replies/event-stream.ts";
import type { Reply } from "../edge/replies/reply.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import type { Call } from "../snapshot/call.ts";
import type { KeptAnswer } from "./answer-seal.ts";
import type { Peppers } from "../domain/keys/peppers.ts";
import { digestOfBody, nameCall, type AllCallNames } from "./call-names.ts";
import { KeptAnswers, type KeptAnswersServices } from "./kept-answers.ts";
import { answerNotKept, keyReused } from "./refusals.ts";
import { resolveModel } from "../snapshot/resolve-model.ts";
import {
  asReplayed,
  isStreamed,
  type Answer,
  type OpenedAnswer,
  type StreamedAnswer,
} from "./answer.ts";
import { AnswerMemory } from "./answer-memory.ts";
import { readIdempotencyKey } from "./read-key.ts";
import { ReplayedFrames } from "./replayed-frames.ts";
import { SharedCall } from "./shared-call.ts";

export type IdempotencyServices = KeptAnswersServices & {
  readonly clock: Clock;
  readonly peppers: Peppers;
};

export interface AskedCall {
  readonly call: KeyCall & Call;
  /** Whatever path led there. */
  readonly endpoint: string;
  /** Of the models that it takes. */
  readonly kind: ModelKind;
  readonly alias: string;
  /** See `digestToShare`. */
  readonly bodyDigest: string;
}

/** Makes the call, as whoever it is given asks for it. */
type Run<Given> = (call: KeyCall & Call) => Promise<Given>;

/** Answers calls as the endpoints ask for it. */
export type AnswerSharing = Pick<Idempotency, "whole" | "streamed">;

/** Digest of a decompressed body whose call may be shared; empty for the others, which need none. */
export function digestToShare(call: KeyCall, body: Uint8Array): Promise<string> {
  return readIdempotencyKey(call) === undefined ? Promise.resolve("") : digestOfBody(body);
}

/**
 * Makes a call once for all requests of one key with one `Idempotency-Key`: while it runs, equal
 * requests join it; afterwards they get the answer that was kept. What fails, or is left by all,
 * keeps nothing, and the next request makes the call anew. Without the header, or on a plan that
 * does not have it, calls pass as they are.
 */
export class Idempotency {
  readonly #services: IdempotencyServices;
  readonly #kept: KeptAnswers;
  readonly #memory: AnswerMemory;
  readonly #running = new Map<string, SharedCall>();

  constructor(services: IdempotencyServices) {
    this.#services = services;
    this.#kept = new KeptAnswers(services);
    this.#memory = new AnswerMemory(() => services.settings().memoryLimitBytes);
  }

  /** Throws `GatewayError`. */
  async whole(asked: AskedCall, run: Run<Reply>): Promise<Reply> {
    const answer = await this.#answer(asked, run);
    if (isStreamed(answer)) throw new Error("an answer that is to be whole is a stream");
    return answer;
  }

  /** Throws `GatewayError`. */
  async streamed(asked: AskedCall, run: Run<OpenedAnswer>): Promise<StreamedAnswer> {
    const answer = await this.#answer(asked, run);
    if (!isStreamed(answer)) throw new Error("an answer that is to be a stream is whole");
    return answer;
  }

  /** Stores what waits for it, once no call runs any more and before the store is closed. */
  close(): Promise<void> {
    return this.#kept.close();
  }

  async #answer(asked: AskedCall, run: Run<Reply | OpenedAnswer>): Promise<Answer> {
    const { call, endpoint, bodyDigest } = asked;
    const idempotencyKey = readIdempotencyKey(call);
    if (idempotencyKey === undefined) return run(call);
    const { id: keyId } = call.caller.key;
    const { capacity } = call.options;
    const names = nameCall(
      { keyId, idempotencyKey, endpoint, capacity, bodyDigest },
      this.#services.peppers,
    );
    const known = this.#running.has(names.id) ? undefined : await this.#kept.look(names);
    // Between here and the end of `#begin` nothing waits: two callers never both begin.
    call.signal.throwIfAborted();
    const running = this.#running.get(names.id);
    if (running !== undefined) return this.#join(asked, names, running);
    if (known === undefined) return this.#begin(asked, names, run);
    const answer = this.#kept.open(known, names);
    checkModel(asked);
    this.#services.onAnswer("replayed");
    return asReplayed(replayed(shownTo(call, answer)));
  }

  async #join(asked: AskedCall, names: AllCallNames, running: SharedCall): Promise<Answer> {
    if (running.requestDigest !== names.requestDigest) throw keyReused();
    if (running.isTooLarge) throw answerNotKept();
    checkModel(asked);
    const reader = running.join(asked.call);
    this.#services.onAnswer("joined");
    return asReplayed(await reader.answer());
  }

  #begin(asked: AskedCall, names: AllCallNames, run: Run<Reply | OpenedAnswer>): Promise<Answer> {
    const { call } = asked;
    const { accountId } = call.caller.key;
    const shared = new SharedCall({
      requestDigest: names.requestDigest,
      // Each caller has a deadline of its own; that of the first is not that of all.
      run: (signal) =>
        run({ ...call, signal, options: { ...call.options, deadlineAt: undefined } }),
      keep: (answer) => this.#kept.keep({ names, accountId, answer }),
      onEnd: () => this.#running.delete(names.id),
      limitBytes: this.#services.settings().answerLimitBytes,
      memory: this.#memory,
      clock: this.#services.clock,
    });
    this.#running.set(names.id, shared);
    const reader = shared.join(call);
    shared.start();
    return reader.answer();
  }
}

/** Throws 400 for a model that is gone since the answer was kept. */
function checkModel({ call, alias, kind }: AskedCall): void {
  resolveModel(call, alias, kind);
}

/** Which target serves may have become the operator's own affair since the answer was kept. */
function shownTo({ snapshot }: KeyCall, answer: KeptAnswer): KeptAnswer {
  if (snapshot.routing.showsTarget) return answer;
  const { "x-sluice-target": _, ...headers } = answer.headers;
  return { ...answer, headers };
}

function replayed({ headers, isStreamed: wasStreamed, text }: KeptAnswer): Answer {
  if (!wasStreamed) return { status: 200, headers, body: text };
  // Never silent, so it needs no keep-alive.
  const frames = new ReplayedFrames(text);
  return { status: 200, headers, frames, keepAlive: keepAliveComment, isEarly: false };
}
