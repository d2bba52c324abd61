import type {
  EmbeddingInput,
  EmbeddingRequest,
  EmbeddingResult,
  EmbeddingVector,
} from "../../domain/chat/embedding.ts";
import { UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import type { UpstreamFailureKind } from "../../domain/errors/failure-kind.ts";
import type { EmbeddingCodec } from "../../upstreams/adapter.ts";
import { attemptVectors } from "../attempts/ask-upstream.ts";
import { type Attempt, type AttemptContext, partOf } from "../attempts/attempt.ts";
import type { AnsweredParts } from "../answered-parts.ts";
import { timeoutsOf } from "../../upstream-client/transport.ts";
import { decideRetry } from "../../routing/retry.ts";
import { wait, whyEnded } from "../../domain/waiting/wait.ts";
import { inParallel } from "../in-parallel.ts";

/** An embeddings request to one target. */
interface AskedEmbeddings {
  readonly request: EmbeddingRequest;
  /** The inputs in a form that the target accepts. */
  readonly inputs: readonly EmbeddingInput[];
  readonly progress: AnsweredParts<EmbeddingVector>;
  readonly codec: EmbeddingCodec;
  readonly attempt: Attempt;
}

/**
 * Sends the missing inputs in as many requests as the target needs, as many at a time as `FanOut`
 * and free places at the upstream allow. Finished inputs are kept when this throws.
 */
export async function sendMissing(asked: AskedEmbeddings): Promise<void> {
  const { request, inputs, progress, codec, attempt } = asked;
  const { call, candidate, meter, place, signal } = attempt;
  const missing = progress.missing();
  const batches = splitIntoBatches(missing, codec.batchLimit(request, candidate.target.model));
  const [only] = batches;
  if (missing.length === inputs.length && batches.length === 1 && only !== undefined) {
    return sendBatch(asked, only, attempt);
  }
  const deadline = call.receivedAt + timeoutsOf(candidate).totalMs;
  // One call leaves half of the places to others.
  const mostPlaces = Math.ceil(candidate.upstream.maxInFlight / 2);
  const fanOut = new FanOut(Math.min(candidate.model.fanOut, mostPlaces));
  let left = batches.length;
  const limit = (): number | Promise<number> => {
    const wanted = Math.min(fanOut.width, left);
    return place.extend(wanted);
  };
  const work = { count: batches.length, limit, signal };
  try {
    await inParallel(work, async (index, ended) => {
      const context = partOf(attempt, ended);
      await sendWithRetries(asked, { batch: batches[index] ?? [], context, deadline, fanOut });
      left -= 1;
    });
  } finally {
    // Batches answered before another failed have used their tokens.
    meter.reportedPart(progress.reportedUsage);
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
  readonly context: AttemptContext;
  readonly deadline: number;
  readonly fanOut: FanOut;
}

/** Retries one batch while the others go on. */
async function sendWithRetries(
  asked: AskedEmbeddings,
  { batch, context, deadline, fanOut }: OneOfBatches,
): Promise<void> {
  const { hasOther } = asked.attempt;
  const { candidate, services, call, signal } = context;
  for (let tries = 1; ;) {
    try {
      return await fanOut.send(() => sendBatch(asked, batch, context));
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      const isTooWide = isThrottle(error) && fanOut.throttled();
      const concernsPart = passingKinds.has(error.details.kind);
      if (!concernsPart || (hasOther && !isTooWide)) throw error;
      const { routing } = call.snapshot;
      const decision = decideRetry({
        failure: error.details,
        triesAtTarget: tries,
        attempts: tries,
        attemptLimit: routing.attempts,
        hasOtherTarget: false,
        isOtherInService: false,
        isCallerGone: signal.aborted,
        remainingMs: deadline - services.clock.monotonic(),
        // Fewer at once are no additional load.
        takeBudget: () =>
          isTooWide || services.budget.retries.tryTake(candidate.target.id, call.caller.key.id),
        firstBackoffMs: routing.firstBackoffMs,
        longestBackoffMs: routing.longestBackoffMs,
        random: services.random,
      });
      if (decision.action === "give-up") throw error;
      services.onAttemptFailed(call, candidate, error);
      await wait(decision.waitMs, signal, services.clock);
      if (signal.aborted) throw whyEnded(signal);
      if (!isTooWide) tries += 1;
    }
  }
}

/** Some servers say that they are overloaded when one caller asks too much. */
function isThrottle({ details: { kind, isOwn } }: UpstreamFailure): boolean {
  return kind === "throttled" || (kind === "overloaded" && isOwn !== true);
}

async function sendBatch(
  { request, inputs: all, progress, codec, attempt }: AskedEmbeddings,
  batch: readonly number[],
  context: AttemptContext,
): Promise<void> {
  const inputs = batch.map((index) => all[index] ?? "");
  const exchange = codec.encode({ ...request, inputs }, attempt.candidate.target.model);
  const reading = { inputs: inputs.length, callInputs: all.length };
  const result = await attemptVectors(exchange, context, reading);
  checkVectors(result, {
    count: inputs.length,
    dimensions: request.dimensions,
    length: progress.first?.length,
  });
  const { target } = attempt.candidate;
  progress.add(batch, result.vectors, result.usage && { ...result.usage, target });
}

/** Requests at once that no target should mind. */
const firstWidth = 4;

/**
 * How many requests of one call a target gets at once: from few to as many as allowed, by one more
 * with each answer until the target throttles; then half as many, and slowly more again (Chiu and
 * Jain 1989, as in TCP, RFC 5681).
 */
class FanOut {
  readonly #most: number;
  #width: number;
  /** Requests under way; more than the width for a while after it was narrowed. */
  #open = 0;
  #wasNarrowed = false;

  constructor(most: number) {
    this.#most = Math.max(1, most);
    this.#width = Math.min(firstWidth, this.#most);
  }

  get width(): number {
    return Math.floor(this.#width);
  }

  /** Sends one request. */
  async send(request: () => Promise<void>): Promise<void> {
    this.#open += 1;
    try {
      await request();
      const more = this.#wasNarrowed ? 1 / this.#width : 1;
      this.#width = Math.min(this.#most, this.#width + more);
    } finally {
      this.#open -= 1;
    }
  }

  /**
   * A request was throttled. Whether it was one of too many at once; if not, the target would
   * throttle any call.
   */
  throttled(): boolean {
    const open = this.#open + 1;
    if (open > this.#width) return true;
    this.#width = Math.max(1, open / 2);
    this.#wasNarrowed = true;
    return open > firstWidth;
  }
}

interface WantedVectors {
  readonly count: number;
  /** The length that the caller asked for. */
  readonly dimensions: number | undefined;
  /** The length of the vectors that the call already has. */
  readonly length: number | undefined;
}

/** Throws a broken answer for vectors that are not one for each input, all of the wanted length. */
function checkVectors(
  { vectors, usage }: EmbeddingResult,
  { count, dimensions, length: before }: WantedVectors,
): void {
  const broken = (message: string, hint?: string): UpstreamFailure =>
    new UpstreamFailure({ kind: "broken-answer", message, hint, usage });
  if (vectors.length !== count) {
    throw broken(`the upstream returned ${vectors.length} vectors for ${count} inputs`);
  }
  const wanted = dimensions ?? before ?? vectors[0]?.length;
  const other = vectors.find(({ length }) => length !== wanted);
  if (other === undefined) return;
  const message = `the upstream returned a vector of ${other.length} numbers instead of ${wanted}`;
  if (dimensions !== undefined) throw broken(message, ignoredDimensions);
  throw broken(message, before === undefined ? undefined : otherLengths);
}

const ignoredDimensions =
  "the caller asked for `dimensions`, which the model does not support or the server ignores";

const otherLengths =
  "a part of the call was answered with vectors of another length: all targets of a model must be " +
  "the same model";

/** Failures of one part; all others fail the attempt, which is retried as a whole. */
const passingKinds: ReadonlySet<UpstreamFailureKind> = new Set([
  "throttled",
  "overloaded",
  "connection-lost",
]);
