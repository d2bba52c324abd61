import type { Clock } from "../domain/clock.ts";
import type { ModelKind } from "../domain/model.ts";
import type { Reply } from "../edge/replies/reply.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import type { Call } from "../snapshot/call.ts";
import type { KeptAnswer } from "./answer-seal.ts";
import type { Peppers } from "../domain/keys/peppers.ts";
import { digestOfBody, nameCall, readIdempotencyKey } from "./call-names.ts";
import { KeptAnswers, type KeptAnswersServices } from "./kept-answers.ts";
import type { KeptReply } from "../store/store.ts";
import { Once } from "./once.ts";
import { answerNotKept, keyReused } from "./refusals.ts";
import type { AllRequestNames } from "./request-names.ts";
import { resolveModel } from "../snapshot/resolve-model.ts";
import {
  asReplayed,
  isStreamed,
  type Answer,
  type OpenedAnswer,
  type StreamedAnswer,
} from "./answer.ts";
import { AnswerMemory } from "./answer-memory.ts";
import { replayedAnswer } from "./replayed-answer.ts";
import { SharedCall } from "./shared-call.ts";

export type RepeatableCallsServices = KeptAnswersServices & {
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
export type AnswerSharing = Pick<RepeatableCalls, "whole" | "streamed">;

/** Digest of a decompressed body whose call may be shared; empty for the others, which need none. */
export function digestToShare(call: KeyCall, body: Uint8Array): Promise<string> {
  return readIdempotencyKey(call) === undefined ? Promise.resolve("") : digestOfBody(body);
}

/**
 * Makes a call once for all requests of one key with one `Idempotency-Key`. Without the header, or on
 * a plan that does not have it, calls pass as they are.
 */
export class RepeatableCalls {
  readonly #services: RepeatableCallsServices;
  readonly #kept: KeptAnswers;
  readonly #memory: AnswerMemory;
  readonly #once: Once<KeptReply, SharedCall>;

  constructor(services: RepeatableCallsServices) {
    this.#services = services;
    this.#kept = new KeptAnswers(services);
    this.#memory = new AnswerMemory(() => services.settings().memoryLimitBytes);
    this.#once = new Once({ find: (names) => this.#kept.find(names), keyReused });
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
    const { onAnswer, peppers } = this.#services;
    const idempotencyKey = readIdempotencyKey(call);
    if (idempotencyKey === undefined) return run(call);
    const { id: keyId } = call.caller.key;
    const { capacity } = call.options;
    const names = nameCall({ keyId, idempotencyKey, endpoint, capacity, bodyDigest }, peppers);
    return this.#once.answer<Answer>({
      names,
      signal: call.signal,
      begin: (onEnd) => this.#begin({ call, names, onEnd }, run),
      wait: (shared) => shared.join(call).answer(),
      checkJoin({ isTooLarge }) {
        if (isTooLarge) throw answerNotKept();
        checkModel(asked);
        onAnswer("joined");
      },
      open: (reply) => {
        const answer = this.#kept.open(reply, names);
        checkModel(asked);
        onAnswer("replayed");
        return replayedAnswer(shownTo(call, answer));
      },
      asReplayed,
    });
  }

  #begin({ call, names, onEnd }: BegunCall, run: Run<Reply | OpenedAnswer>): SharedCall {
    const { accountId } = call.caller.key;
    return new SharedCall({
      requestDigest: names.requestDigest,
      // Each caller has a deadline of its own; that of the first is not that of all.
      run: (signal) =>
        run({ ...call, signal, options: { ...call.options, deadlineAt: undefined } }),
      keep: (answer) => this.#kept.keep({ names, accountId, answer }),
      onEnd,
      limitBytes: this.#services.settings().answerLimitBytes,
      memory: this.#memory,
      clock: this.#services.clock,
    });
  }
}

interface BegunCall extends Pick<AskedCall, "call"> {
  readonly names: AllRequestNames;
  readonly onEnd: () => void;
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
