import type { EndSignal } from "../../domain/waiting/end-signal.ts";
import type { ChatChoice, ChatEvent, ChatResult } from "../../domain/chat/answer.ts";
import { choiceCount, type Conversation } from "../../domain/chat/conversation.ts";
import { brokenAnswer, UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { Model, Target } from "../../domain/model.ts";
import type { ChatCodec } from "../../upstreams/adapter.ts";
import { attemptStream, attemptWhole } from "../attempts/ask-upstream.ts";
import { type Attempt, partOf } from "../attempts/attempt.ts";
import type { Call } from "../../snapshot/call.ts";
import type { OpenStream } from "../../upstream-client/event-reader.ts";
import { nextOf } from "../../domain/waiting/flow.ts";
import { MergedChoices } from "./merged-choices.ts";
import { possibleTargets } from "../attempts/call-candidates.ts";
import { AnsweredParts } from "../answered-parts.ts";
import { inParallel } from "../in-parallel.ts";

/** A chat request to one target. */
export interface ChatAttempt {
  readonly request: Conversation;
  readonly codec: ChatCodec;
  readonly attempt: Attempt;
}

/** Limit on parallel requests for the choices of one call. */
const choicesAtOnce = 8;

/** How often upstreams may read the input of a request: once per choice, or once. */
export function inputReadings(
  request: Conversation,
  model: Model,
  call: Pick<Call, "snapshot" | "environment">,
): number {
  const choices = choiceCount(request);
  if (choices === 1) return 1;
  const { upstreams } = call.snapshot;
  const isReadAgain = possibleTargets(model, call).some(
    ({ target }) => upstreams.get(target.upstream)?.adapter.chat?.takesChoiceCount === false,
  );
  return isReadAgain ? choices : 1;
}

/**
 * Returns the whole answer, with one request per choice where the upstream requires it. `progress`
 * keeps finished choices when this throws.
 */
export function attemptChat(asked: ChatAttempt, progress: ChoiceProgress): Promise<ChatResult> {
  const { request, codec, attempt } = asked;
  const choices = choiceCount(request);
  const isOneRequest =
    choices === 1 || (codec.takesChoiceCount && progress.missing().length === choices);
  if (isOneRequest) {
    return attemptWhole(codec.encode(request, attempt.candidate.target.model), attempt);
  }
  return attemptChoices(asked, progress);
}

async function attemptChoices(asked: ChatAttempt, progress: ChoiceProgress): Promise<ChatResult> {
  try {
    if (asked.codec.takesChoiceCount) await sendTogether(asked, progress);
    else await sendSeparately(asked, progress);
    return progress.result();
  } finally {
    // Choices answered before another failed have used their tokens.
    asked.attempt.meter.reportedPart(progress.reportedUsage);
  }
}

function withChoices(request: Conversation, n: number | undefined): Conversation {
  return { ...request, options: { ...request.options, n } };
}

async function sendTogether(
  { request, codec, attempt }: ChatAttempt,
  progress: ChoiceProgress,
): Promise<void> {
  const missing = progress.missing();
  const exchange = codec.encode(
    withChoices(request, missing.length),
    attempt.candidate.target.model,
  );
  const own = partOf(attempt, attempt.signal, progress.unanswered());
  progress.addResult(missing, await attemptWhole(exchange, own), attempt.candidate.target);
}

async function sendSeparately(asked: ChatAttempt, progress: ChoiceProgress): Promise<void> {
  const { request, codec, attempt } = asked;
  const exchange = codec.encode(withChoices(request, undefined), attempt.candidate.target.model);
  const missing = progress.missing();
  const limit = await atOnce(missing.length, attempt);
  const work = { count: missing.length, limit, signal: attempt.signal };
  let failed: unknown;
  await inParallel(work, async (order, signal) => {
    const own = partOf(attempt, signal, 1 / choiceCount(request));
    const startedAt = attempt.services.clock.monotonic();
    try {
      const result = await attemptWhole(exchange, own);
      progress.addResult(missing.slice(order, order + 1), result, attempt.candidate.target);
    } catch (error) {
      if (failed !== undefined) countOther(asked, { failed, error, startedAt });
      failed ??= error;
      throw error;
    }
  });
}

interface OtherChoice {
  /** The first failure, which is that of the attempt. */
  readonly failed: unknown;
  readonly error: unknown;
  readonly startedAt: number;
}

/**
 * Other choices were generated, too, when one fails the attempt: each costs what it reports, or what
 * it can have generated until it was aborted. A failure without usage stands for all of them.
 */
function countOther(
  { request, attempt }: ChatAttempt,
  { failed, error, startedAt }: OtherChoice,
): void {
  const { meter, services, signal } = attempt;
  const isKnown = failed instanceof UpstreamFailure && failed.details.usage !== undefined;
  if (!isKnown || signal.aborted) return;
  const isOwn = error instanceof UpstreamFailure;
  const details = isOwn ? error.details : ({ kind: "connection-lost", message: "" } as const);
  const choices = choiceCount(request);
  // The share takes the time of one choice from that of all.
  const elapsedMs = (services.clock.monotonic() - startedAt) * choices;
  const { target } = attempt.candidate;
  meter.attemptFailed(details, { target, share: 1 / choices, elapsedMs });
}

/** Like `attemptChat`, until the first events of the answer, which ends with the signal. */
export async function attemptChatStream(
  { request, codec, attempt }: ChatAttempt,
  signal: EndSignal,
): Promise<OpenStream<ChatEvent>> {
  const { model } = attempt.candidate.target;
  const choices = choiceCount(request);
  if (choices === 1 || codec.takesChoiceCount) {
    return attemptStream(codec.encodeStream(request, model), partOf(attempt, signal));
  }
  const exchange = codec.encodeStream(withChoices(request, undefined), model);
  const limit = await atOnce(choices, attempt);
  const open = (_: number, own: EndSignal) => attemptStream(exchange, partOf(attempt, own));
  const opened = await openTogether({ count: limit, limit, signal }, open);
  const onAllOpen = attempt.call.memory?.keep() ?? (() => undefined);
  const rest = new MergedChoices({ choices, opened, open, onAllOpen, signal });
  const first = await nextOf(rest);
  if (first === undefined) throw noChoice();
  return { first, rest };
}

/**
 * Opens the first streams together before any event is delivered: providers limit bursts, and a
 * refused call can then still be retried elsewhere.
 */
async function openTogether(
  work: Parameters<typeof inParallel>[0],
  open: (choice: number, signal: EndSignal) => Promise<OpenStream<ChatEvent>>,
): Promise<readonly OpenStream<ChatEvent>[]> {
  const opened: OpenStream<ChatEvent>[] = [];
  try {
    return await inParallel(work, async (choice, signal) => {
      const stream = await open(choice, signal);
      opened.push(stream);
      return stream;
    });
  } catch (error) {
    for (const { rest } of opened) rest.cancel();
    throw error;
  }
}

/**
 * Places are taken for all of them at once, so that the choices of a call do not block each other.
 */
async function atOnce(choices: number, { place }: Attempt): Promise<number> {
  return place.extend(Math.min(choicesAtOnce, choices));
}

/** The finished choices of a call. */
export class ChoiceProgress extends AnsweredParts<ChatChoice> {
  #first: ChatResult | undefined;

  /** `result` has a choice for each of `indexes`, in order; throws `broken-answer` if not. */
  addResult(indexes: readonly number[], result: ChatResult, target: Target): void {
    this.#first ??= result;
    const choices = indexes.flatMap((index, position) => {
      const choice = result.choices[position];
      return choice === undefined ? [] : [{ ...choice, index }];
    });
    // Another target may answer the others.
    this.add(indexes, choices, result.usage && { ...result.usage, target });
    const missing = this.missing();
    if (indexes.some((index) => missing.includes(index))) throw noChoice();
  }

  /** Valid once nothing is missing. */
  result(): ChatResult {
    const { all: choices, usage } = this;
    const { systemFingerprint, serviceTier, extra } = this.#first ?? {};
    return { choices, usage, systemFingerprint, serviceTier, extra };
  }
}

function noChoice(): UpstreamFailure {
  return brokenAnswer("the answer had no choice");
}
