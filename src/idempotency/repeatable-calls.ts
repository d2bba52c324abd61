import type { Clock } from "../domain/clock.ts";
import type { ModelKind } from "../domain/model.ts";
import { keepDuring } from "../edge/body/body-memory.ts";
import type { Reply } from "../edge/replies/reply.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import type { Call } from "../snapshot/call.ts";
import type { Peppers } from "../domain/keys/peppers.ts";
import { nameCall, type RepeatMark } from "./call-names.ts";
import { KeptAnswers, type KeptAnswersServices } from "./kept-answers.ts";
import type { Joins } from "../store/joins.ts";
import type { KeptReply } from "../store/store.ts";
import { Claims } from "./claims.ts";
import { Once } from "./once.ts";
import { answerNotKept, keyReused } from "./refusals.ts";
import type { AllRequestNames } from "./request-names.ts";
import { resolveModel } from "../snapshot/resolve-model.ts";
import {
  asReplayed,
  isStreamed,
  type Answer,
  type KeptAnswer,
  type OpenedAnswer,
  type StreamedAnswer,
} from "./shared/answer.ts";
import { AnswerMemory } from "./shared/answer-memory.ts";
import { replayedAnswer } from "./replayed-answer.ts";
import { SharedCall } from "./shared/shared-call.ts";
import type { SharedWorkOptions } from "./shared/shared-work.ts";

export type RepeatableCallsServices = KeptAnswersServices & {
  readonly clock: Clock;
  readonly peppers: Peppers;
  /** Set when other processes may receive the same calls. */
  readonly joins?: Joins | undefined;
};

export interface AskedCall {
  readonly call: KeyCall & Call;
  /** The same for all variants of its path. */
  readonly endpoint: string;
  /** The kind of model that the endpoint accepts. */
  readonly kind: ModelKind;
  readonly alias: string;
  /** Undefined: the answer is not shared. */
  readonly mark: RepeatMark | undefined;
}

/** Makes the call with the signal and the options it is given. */
type Run<Given> = (call: KeyCall & Call) => Promise<Given>;

export type AnswerSharing = Pick<RepeatableCalls, "whole" | "streamed">;

/**
 * Makes a call once for all requests of one key with one `Idempotency-Key`. Other calls, and calls
 * on plans that are not idempotent, pass unchanged.
 */
export class RepeatableCalls {
  readonly #services: RepeatableCallsServices;
  readonly #kept: KeptAnswers;
  readonly #memory: AnswerMemory;
  readonly #once: Once<KeptReply, SharedCall>;
  readonly #claims: Claims | undefined;

  constructor(services: RepeatableCallsServices) {
    const { joins, settings } = services;
    this.#services = services;
    const kept = new KeptAnswers({ ...services, onSaved: (id) => this.#claims?.release(id) });
    this.#kept = kept;
    this.#memory = new AnswerMemory(() => settings().memoryLimitBytes);
    const answeredElsewhere = (reply: KeptReply): Error => this.#once.answeredElsewhere(reply);
    this.#claims = joins && new Claims({ joins, kept, answeredElsewhere });
    this.#once = new Once({
      find: async (names) =>
        // With claims, stored answers are looked up under the claim.
        joins === undefined ? kept.find(names) : kept.findUnsaved(names.id),
      keyReused,
    });
  }

  /** Throws `GatewayError`. */
  whole(asked: AskedCall, run: Run<Reply>): Promise<Reply> {
    return asked.mark === undefined ? run(asked.call) : this.#sharedWhole(asked, onlyOnce(run));
  }

  async #sharedWhole(asked: AskedCall, run: Run<Reply>): Promise<Reply> {
    const answer = await this.#answer(asked, run);
    if (isStreamed(answer)) throw new Error("an answer that is to be whole is a stream");
    return answer;
  }

  /** Throws `GatewayError`. */
  streamed(asked: AskedCall, run: Run<OpenedAnswer>): Promise<StreamedAnswer> {
    return asked.mark === undefined ? run(asked.call) : this.#sharedStream(asked, onlyOnce(run));
  }

  async #sharedStream(asked: AskedCall, run: Run<OpenedAnswer>): Promise<StreamedAnswer> {
    const answer = await this.#answer(asked, run);
    if (!isStreamed(answer)) throw new Error("an answer that is to be a stream is whole");
    return answer;
  }

  /** Stores the waiting answers. Call it when no call is running, before the store is closed. */
  close(): Promise<void> {
    return this.#kept.close();
  }

  async #answer(asked: AskedCall, run: Run<Reply | OpenedAnswer>): Promise<Answer> {
    const { call, endpoint, mark } = asked;
    const { onAnswer, peppers } = this.#services;
    if (mark === undefined) return run(call);
    const { id: keyId } = call.caller.key;
    const { capacity } = call.options;
    const names = nameCall({ ...mark, keyId, endpoint, capacity }, peppers);
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
        return replayedAnswer(withTargetIfShown(call, answer));
      },
      asReplayed,
    });
  }

  #begin({ call, names, onEnd }: BegunCall, run: Run<Reply | OpenedAnswer>): SharedCall {
    const { accountId } = call.caller.key;
    const work: SharedWorkOptions<Reply | OpenedAnswer> = {
      // The deadline of the first caller must not end the call for the others.
      run: (signal) =>
        run({ ...call, signal, options: { ...call.options, deadlineAt: undefined } }),
      onEnd,
    };
    const guarded = this.#claims?.guard(names, work) ?? work;
    return new SharedCall({
      ...guarded,
      // The first caller may leave before the call of the others is sent.
      run: (signal) => keepDuring(call.memory, guarded.run(signal)),
      keep: (answer) => this.#kept.keep({ names, accountId, answer }),
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

/** A shared stream is long-lived, and must not keep the request of its call in memory. */
function onlyOnce<Given>(run: Run<Given>): Run<Given> {
  const held: { run?: Run<Given> | undefined } = { run };
  return (call) => {
    const { run: own } = held;
    held.run = undefined;
    if (own === undefined) throw new Error("a call is made only once");
    return own(call);
  };
}

/** Throws 400 for a model that was removed since the answer was kept. */
function checkModel({ call, alias, kind }: AskedCall): void {
  resolveModel(call, alias, kind);
}

/** Removes the target if the configuration has hidden targets since the answer was kept. */
function withTargetIfShown({ snapshot }: KeyCall, answer: KeptAnswer): KeptAnswer {
  if (snapshot.routing.showsTarget) return answer;
  const { "x-sluice-target": _, ...headers } = answer.headers;
  return { ...answer, headers };
}
