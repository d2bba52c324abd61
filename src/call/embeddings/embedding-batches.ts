import type { EmbeddingInput, EmbeddingRequest } from "../../domain/chat/embedding.ts";
import type { EmbeddingVector } from "../../domain/chat/embedding-vector.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { EmbeddingCodec } from "../../upstreams/adapter.ts";
import { attemptVectors, type AttemptContext } from "../attempts/attempt.ts";
import type { Candidate } from "../../routing/candidates.ts";
import type { AnsweredParts } from "../answered-parts.ts";
import { inParallel } from "../../domain/waiting/in-parallel.ts";
import { checkVectors } from "./check-vectors.ts";
import { FanOut } from "./fan-out.ts";
import { waitBeforeItemRetry } from "./item-retry.ts";
import { timeoutsOf } from "../../upstream-client/timeouts-of.ts";
import { wait } from "../../domain/waiting/wait.ts";
import { whyEnded } from "../../domain/waiting/why-ended.ts";

/** An embeddings request to one target. */
export interface EmbeddingAttempt {
  readonly request: EmbeddingRequest;
  /** The inputs in a form that the target accepts. */
  readonly inputs: readonly EmbeddingInput[];
  readonly progress: AnsweredParts<EmbeddingVector>;
  readonly codec: EmbeddingCodec;
  readonly candidate: Candidate;
  readonly context: AttemptContext;
}

/**
 * Sends the missing inputs in as many requests as the target needs, as many at a time as `FanOut`
 * and free places at the upstream allow. Finished inputs are kept when this throws.
 */
export async function sendMissing(attempt: EmbeddingAttempt): Promise<void> {
  const { request, inputs, progress, codec, candidate, context } = attempt;
  const missing = progress.missing();
  const batches = splitIntoBatches(missing, codec.batchLimit(request, candidate.target.model));
  const [only] = batches;
  if (missing.length === inputs.length && batches.length === 1 && only !== undefined) {
    return sendBatch(attempt, only);
  }
  const { call } = context;
  const deadline = call.receivedAt + timeoutsOf(candidate).totalMs;
  // One call leaves half of the places to others.
  const mostPlaces = Math.ceil(candidate.upstream.maxInFlight / 2);
  const fanOut = new FanOut(Math.min(candidate.model.fanOut, mostPlaces));
  let left = batches.length;
  const limit = (): number | Promise<number> => {
    const wanted = Math.min(fanOut.width, left);
    return context.place?.extend(wanted) ?? wanted;
  };
  const work = { count: batches.length, limit, signal: call.signal };
  try {
    await inParallel(work, async (index, signal) => {
      const own = { ...attempt, context: { ...context, call: { ...call, signal } } };
      await sendWithRetries(own, { batch: batches[index] ?? [], deadline, fanOut });
      left -= 1;
    });
  } finally {
    // Batches answered before another failed have used their tokens.
    context.meter.reportedPart(progress.reportedUsage);
  }
}

function splitIntoBatches(
  indexes: readonly number[],
  limit: number,
): readonly (readonly number[])[] {
  const batches: (readonly number[])[] = [];
  for (let start = 0; start < indexes.length; start += limit) {
    batches.push(indexes.slice(start, start + limit));
  }
  return batches;
}

interface OneOfBatches {
  readonly batch: readonly number[];
  readonly deadline: number;
  readonly fanOut: FanOut;
}

/** Retries one batch while the others go on. */
async function sendWithRetries(
  attempt: EmbeddingAttempt,
  { batch, deadline, fanOut }: OneOfBatches,
): Promise<void> {
  const { candidate, context } = attempt;
  const { services, call } = context;
  for (let tries = 1; ;) {
    try {
      return await fanOut.send(() => sendBatch(attempt, batch));
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      const isTooWide = isThrottle(error) && fanOut.throttled();
      if (context.hasOther === true && !isTooWide) throw error;
      const waitMs = waitBeforeItemRetry(error.details, tries, services.random());
      if (waitMs === undefined || services.clock.monotonic() + waitMs > deadline) throw error;
      const { retries } = services.budget;
      // Fewer at once are no additional load.
      const isPaid = isTooWide || (await retries.tryTake(candidate.target.id, call.caller.key.id));
      if (!isPaid) throw error;
      services.onAttemptFailed(call, candidate, error);
      await wait(waitMs, call.signal, services.clock);
      if (call.signal.aborted) throw whyEnded(call.signal);
      if (!isTooWide) tries += 1;
    }
  }
}

/** Some servers say that they are overloaded when one caller asks too much. */
function isThrottle({ details: { kind, isOwn } }: UpstreamFailure): boolean {
  return kind === "throttled" || (kind === "overloaded" && isOwn !== true);
}

async function sendBatch(attempt: EmbeddingAttempt, batch: readonly number[]): Promise<void> {
  const { request, progress, codec, candidate, context } = attempt;
  const inputs = batch.map((index) => attempt.inputs[index] ?? "");
  const exchange = codec.encode({ ...request, inputs }, candidate.target.model);
  const reading = { inputs: inputs.length, callInputs: attempt.inputs.length, context };
  const result = await attemptVectors(exchange, candidate, reading);
  checkVectors(result, {
    count: inputs.length,
    dimensions: request.dimensions,
    length: progress.first?.length,
  });
  progress.add(batch, result.vectors, result.usage);
}
