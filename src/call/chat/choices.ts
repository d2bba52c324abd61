import type { EndSignal } from "../../domain/waiting/end-signal.ts";
import type { ChatChoice, ChatEvent, ChatRequest, ChatResult } from "../../domain/chat/chat.ts";
import { brokenAnswer, UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { Model } from "../../domain/model.ts";
import type { ChatCodec } from "../../upstreams/adapter.ts";
import { type AttemptContext, attemptStream, attemptWhole } from "../attempts/attempt.ts";
import type { Call } from "../../snapshot/call.ts";
import type { Candidate } from "../../routing/candidates.ts";
import type { OpenStream } from "../../upstream-client/event-reader.ts";
import { nextOf } from "../../domain/waiting/flow.ts";
import { inParallel } from "../../domain/waiting/in-parallel.ts";
import { MergedChoices } from "./merged-choices.ts";
import { possibleTargets } from "../attempts/call-candidates.ts";
import { AnsweredParts } from "../answered-parts.ts";

export interface ChatTarget {
  readonly codec: ChatCodec;
  readonly candidate: Candidate;
}

/** A chat request to one target. */
export interface ChatAttempt extends ChatTarget {
  readonly request: ChatRequest;
  readonly context: AttemptContext;
}

/** Limit on parallel requests for the choices of one call. */
const choicesAtOnce = 8;

export function choiceCount(request: ChatRequest): number {
  return request.n ?? 1;
}

/** How often upstreams may read the input of a request: once per choice, or once. */
export function inputReadings(
  request: ChatRequest,
  model: Model,
  call: Pick<Call, "snapshot" | "environment">,
): number {
  const { upstreams } = call.snapshot;
  const isReadAgain = possibleTargets(model, call).some(
    ({ target }) => upstreams.get(target.upstream)?.adapter.chat?.takesChoiceCount === false,
  );
  return isReadAgain ? choiceCount(request) : 1;
}

/**
 * Returns the whole answer, with one request per choice where the upstream requires it. `progress`
 * keeps finished choices when this throws.
 */
export function attemptChat(attempt: ChatAttempt, progress: ChoiceProgress): Promise<ChatResult> {
  const { request, codec, candidate, context } = attempt;
  const choices = choiceCount(request);
  const isOneRequest =
    choices === 1 || (codec.takesChoiceCount && progress.missing().length === choices);
  if (isOneRequest) {
    return attemptWhole(codec.encode(request, candidate.target.model), candidate, context);
  }
  return attemptChoices(attempt, progress);
}

async function attemptChoices(attempt: ChatAttempt, progress: ChoiceProgress): Promise<ChatResult> {
  try {
    if (attempt.codec.takesChoiceCount) await sendTogether(attempt, progress);
    else await sendSeparately(attempt, progress);
    return progress.result();
  } finally {
    // Choices answered before another failed have used their tokens.
    attempt.context.meter.reportedPart(progress.reportedUsage);
  }
}

async function sendTogether(
  { request, codec, candidate, context }: ChatAttempt,
  progress: ChoiceProgress,
): Promise<void> {
  const missing = progress.missing();
  const exchange = codec.encode({ ...request, n: missing.length }, candidate.target.model);
  const own = { ...context, share: progress.unanswered() };
  progress.addResult(missing, await attemptWhole(exchange, candidate, own));
}

async function sendSeparately(attempt: ChatAttempt, progress: ChoiceProgress): Promise<void> {
  const { request, codec, candidate, context } = attempt;
  const exchange = codec.encode({ ...request, n: null }, candidate.target.model);
  const missing = progress.missing();
  const limit = await atOnce(missing.length, context);
  const work = { count: missing.length, limit, signal: context.call.signal };
  let failed: unknown;
  await inParallel(work, async (order, signal) => {
    const share = 1 / choiceCount(request);
    const own = { ...context, share, call: { ...context.call, signal } };
    const startedAt = context.services.clock.monotonic();
    try {
      const result = await attemptWhole(exchange, candidate, own);
      progress.addResult(missing.slice(order, order + 1), result);
    } catch (error) {
      if (failed !== undefined) countOther(attempt, { failed, error, startedAt });
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
  { request, context }: ChatAttempt,
  { failed, error, startedAt }: OtherChoice,
): void {
  const { meter, services, call } = context;
  const isKnown = failed instanceof UpstreamFailure && failed.details.usage !== undefined;
  if (!isKnown || call.signal.aborted) return;
  const isOwn = error instanceof UpstreamFailure;
  const details = isOwn ? error.details : ({ kind: "connection-lost", message: "" } as const);
  const choices = choiceCount(request);
  // The share takes the time of one choice from that of all.
  const elapsedMs = (services.clock.monotonic() - startedAt) * choices;
  meter.attemptFailed(details, { share: 1 / choices, elapsedMs });
}

/** Like `attemptChat`, until the first events of the answer. */
export async function attemptChatStream(attempt: ChatAttempt): Promise<OpenStream<ChatEvent>> {
  const { request, codec, candidate, context } = attempt;
  const choices = choiceCount(request);
  if (choices === 1 || codec.takesChoiceCount) {
    return attemptStream(codec.encodeStream(request, candidate.target.model), candidate, context);
  }
  const exchange = codec.encodeStream({ ...request, n: null }, candidate.target.model);
  const { signal } = context.call;
  const limit = await atOnce(choices, context);
  const open = (_: number, own: EndSignal) =>
    attemptStream(exchange, candidate, { ...context, call: { ...context.call, signal: own } });
  const opened = await openTogether({ count: limit, limit, signal }, open);
  const onAllOpen = context.call.memory?.keep() ?? (() => undefined);
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
async function atOnce(choices: number, { place }: AttemptContext): Promise<number> {
  const wanted = Math.min(choicesAtOnce, choices);
  return place?.extend(wanted) ?? wanted;
}

/** The finished choices of a call. */
export class ChoiceProgress extends AnsweredParts<ChatChoice> {
  #first: ChatResult | undefined;

  /** `result` has a choice for each of `indexes`, in order; throws `broken-answer` if not. */
  addResult(indexes: readonly number[], result: ChatResult): void {
    this.#first ??= result;
    const choices = indexes.flatMap((index, position) => {
      const choice = result.choices[position];
      return choice === undefined ? [] : [{ ...choice, index }];
    });
    this.add(indexes, choices, result.usage);
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
