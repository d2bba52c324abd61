import type { ChatEvent, ChatRequest, ChatResult } from "../domain/chat.ts";
import type { Model } from "../domain/model.ts";
import { UpstreamFailure } from "../domain/upstream-failure.ts";
import type { ChatCodec } from "../upstreams/adapter.ts";
import { attemptStream, attemptWhole, type AttemptContext } from "./attempt.ts";
import { placesAt, type Candidate } from "./candidates.ts";
import type { OpenStream } from "./event-batches.ts";
import { inParallel } from "./in-parallel.ts";
import { MergedChoices } from "./merged-choices.ts";
import type { Snapshot } from "./snapshot.ts";
import { sumUsage } from "./sum-usage.ts";

/** A chat request on its way to one target. */
export interface ChatAttempt {
  readonly request: ChatRequest;
  readonly codec: ChatCodec;
  readonly candidate: Candidate;
  readonly context: AttemptContext;
}

/** Most requests that the choices of one call have under way at once. */
const choicesAtOnce = 8;

export function choiceCount(request: ChatRequest): number {
  return request.n ?? 1;
}

/** How often the upstreams of a model may read the input of a request: once for each choice, or once. */
export function inputReadings(request: ChatRequest, model: Model, snapshot: Snapshot): number {
  const isReadAgain = model.targets.some(
    ({ upstream }) => snapshot.upstreams.get(upstream)?.adapter.chat?.takesChoiceCount === false,
  );
  return isReadAgain ? choiceCount(request) : 1;
}

/** The whole answer, whether the upstream takes the number of choices or one choice a request. */
export async function attemptChat(attempt: ChatAttempt): Promise<ChatResult> {
  const { request, codec, candidate, context } = attempt;
  const choices = choiceCount(request);
  if (choices === 1 || codec.takesChoiceCount) {
    return attemptWhole(codec.encode(request, candidate.target.model), candidate, context);
  }
  const exchange = codec.encode({ ...request, n: null }, candidate.target.model);
  const results: ChatResult[] = [];
  const { signal } = context.call;
  const limit = Math.min(choicesAtOnce, placesAt(candidate));
  try {
    await inParallel({ count: choices, limit, signal }, async (choice, ownSignal) => {
      const own = contextOf(attempt, choice < limit, ownSignal);
      results[choice] = await attemptWhole(exchange, candidate, own);
    });
  } catch (error) {
    // Choices that were answered before another failed have used their tokens.
    const done = results.filter(isPresent);
    if (done.length > 0) context.meter.reported(sumUsage(done.map(({ usage }) => usage)));
    throw error;
  }
  return joinChoices(results);
}

/** As `attemptChat`, until the first events of the answer. */
export async function attemptChatStream(attempt: ChatAttempt): Promise<OpenStream<ChatEvent>> {
  const { request, codec, candidate, context } = attempt;
  const choices = choiceCount(request);
  if (choices === 1 || codec.takesChoiceCount) {
    return attemptStream(codec.encodeStream(request, candidate.target.model), candidate, context);
  }
  const exchange = codec.encodeStream({ ...request, n: null }, candidate.target.model);
  const { signal } = context.call;
  const limit = Math.min(choicesAtOnce, choices, placesAt(candidate));
  const open = (choice: number, ownSignal: AbortSignal) =>
    attemptStream(exchange, candidate, contextOf(attempt, choice < limit, ownSignal));
  const opened = await openTogether({ count: limit, limit, signal }, open);
  const rest = new MergedChoices({ choices, opened, open, signal });
  const first = await rest.next();
  if (first === undefined) throw noChoice();
  return { first, rest };
}

/**
 * The streams that fit at once are all open before the caller gets an event of any: providers limit
 * bursts, and what one of them refuses can then still be tried elsewhere.
 */
async function openTogether(
  work: Parameters<typeof inParallel>[0],
  open: (choice: number, signal: AbortSignal) => Promise<OpenStream<ChatEvent>>,
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
 * One choice's own. Later choices follow one whose place comes free once its connection has come to
 * its end, a moment after its answer; what the others have brought by then must not be lost.
 */
function contextOf(
  { candidate, context }: ChatAttempt,
  isAmongFirst: boolean,
  signal: AbortSignal,
): AttemptContext {
  const placeWaitMs = isAmongFirst ? 0 : candidate.upstream.timeouts.firstByteMs;
  return { ...context, call: { ...context.call, signal }, placeWaitMs };
}

function joinChoices(results: readonly ChatResult[]): ChatResult {
  const choices = results.map(({ choices: [choice] }, index) => {
    if (choice === undefined) throw noChoice();
    return { ...choice, index };
  });
  return {
    choices,
    usage: sumUsage(results.map(({ usage }) => usage)),
    systemFingerprint: results[0]?.systemFingerprint,
    serviceTier: results[0]?.serviceTier,
  };
}

function noChoice(): UpstreamFailure {
  return new UpstreamFailure({ kind: "broken-answer", message: "the answer had no choice" });
}

/** Work that was ended leaves holes where its results would be. */
function isPresent<Value>(value: Value | undefined): value is Value {
  return value !== undefined;
}
