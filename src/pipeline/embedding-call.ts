import type { EmbeddingInput, EmbeddingRequest, EmbeddingResult } from "../domain/embedding.ts";
import type { TokenUsage } from "../domain/usage.ts";
import { UpstreamFailure } from "../domain/upstream-failure.ts";
import type { EmbeddingCodec } from "../upstreams/adapter.ts";
import { attemptWhole, type AttemptContext } from "./attempt.ts";
import type { Call } from "./call.ts";
import type { Candidate } from "./candidates.ts";
import { checkContextWindow } from "./check-request.ts";
import { runCall, type Operation, type StartedCall } from "./run-call.ts";
import type { PipelineServices } from "./services.ts";

export interface EmbeddingCall {
  readonly request: EmbeddingRequest;
  /** Length of the JSON body; what the input estimate is made from. */
  readonly bodyBytes: number;
  /** Turns token ids into text, for upstreams that take only text. */
  readonly decodeTokens: (tokens: readonly number[]) => Promise<string>;
}

/** Runs an embeddings call to its whole answer. Throws `GatewayError`. */
export async function runEmbeddings(
  call: Call,
  embedding: EmbeddingCall,
  services: PipelineServices,
): Promise<StartedCall<EmbeddingResult>> {
  const started = await runCall(call, embeddingOperation(embedding), services);
  if (started.answer.usage !== undefined) started.meter.reported(started.answer.usage);
  started.meter.completed();
  return started;
}

function embeddingOperation(embedding: EmbeddingCall): Operation<EmbeddingResult> {
  const { request, bodyBytes } = embedding;
  const size = { textBytes: bodyBytes, attachmentTokens: 0 };
  return {
    alias: request.model,
    kind: "embedding",
    isStreamed: false,
    size,
    output: { cap: 0, choices: 1 },
    check(model) {
      // The window holds for each input; only a single one can be judged by the body's length.
      if (request.inputs.length === 1) checkContextWindow(size, model);
    },
    async attempt(candidate, context) {
      const codec = embeddingCodec(candidate);
      const inputs = await acceptableInputs(embedding, codec);
      const batches = splitIntoBatches(inputs, codec.batchLimit(request, candidate.target.model));
      const results = await sendBatches({ batches, request, codec, candidate, context });
      context.meter.answering();
      return join(results);
    },
  };
}

function embeddingCodec({ upstream }: Candidate): EmbeddingCodec {
  const { embeddings } = upstream.adapter;
  if (embeddings !== undefined) return embeddings;
  throw new UpstreamFailure({
    kind: "unknown-model",
    message: `upstream ${upstream.name} does not serve embedding models`,
  });
}

async function acceptableInputs(
  { request, decodeTokens }: EmbeddingCall,
  codec: EmbeddingCodec,
): Promise<readonly EmbeddingInput[]> {
  if (codec.takesTokenIds || request.inputs.every((input) => typeof input === "string")) {
    return request.inputs;
  }
  const inputs: string[] = [];
  for (const input of request.inputs) {
    inputs.push(typeof input === "string" ? input : await decodeTokens(input));
  }
  return inputs;
}

function splitIntoBatches(
  inputs: readonly EmbeddingInput[],
  batchLimit: number,
): readonly (readonly EmbeddingInput[])[] {
  if (inputs.length <= batchLimit) return [inputs];
  const batches: (readonly EmbeddingInput[])[] = [];
  for (let start = 0; start < inputs.length; start += batchLimit) {
    batches.push(inputs.slice(start, start + batchLimit));
  }
  return batches;
}

interface FanOut {
  readonly batches: readonly (readonly EmbeddingInput[])[];
  readonly request: EmbeddingRequest;
  readonly codec: EmbeddingCodec;
  readonly candidate: Candidate;
  readonly context: AttemptContext;
}

/** At most the model's `fanOut` at a time; the first failure ends the others. */
async function sendBatches(work: FanOut): Promise<readonly EmbeddingResult[]> {
  const [only] = work.batches;
  if (work.batches.length === 1 && only !== undefined) return [await sendBatch(work, only)];
  const results: EmbeddingResult[] = [];
  const failure = new AbortController();
  const signal = AbortSignal.any([work.context.call.signal, failure.signal]);
  const context = { ...work.context, call: { ...work.context.call, signal } };
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < work.batches.length; index = next++) {
      const inputs = work.batches[index] ?? [];
      results[index] = await sendBatch({ ...work, context }, inputs);
    }
  };
  const { model, upstream } = work.candidate;
  // Never more than the upstream has places for: the batches must not refuse each other.
  const places = Math.max(1, upstream.inFlight.free);
  const workers = Math.min(model.fanOut, work.batches.length, places);
  try {
    await Promise.all(Array.from({ length: workers }, worker));
  } catch (error) {
    failure.abort();
    reportDone(results, work.context);
    throw error;
  }
  return results;
}

/** Batches that were answered before another failed have used their tokens. */
function reportDone(results: readonly EmbeddingResult[], { meter }: AttemptContext): void {
  const done = results.filter((result) => result !== undefined);
  const usage = done.length === 0 ? undefined : sumUsage(done);
  if (usage !== undefined) meter.reported(usage);
}

async function sendBatch(
  { request, codec, candidate, context }: FanOut,
  inputs: readonly EmbeddingInput[],
): Promise<EmbeddingResult> {
  const exchange = codec.encode({ ...request, inputs }, candidate.target.model);
  const result = await attemptWhole(exchange, candidate, context);
  if (result.vectors.length === inputs.length) return result;
  throw new UpstreamFailure({
    kind: "broken-answer",
    message: `the upstream answered ${result.vectors.length} vectors for ${inputs.length} inputs`,
  });
}

function join(results: readonly EmbeddingResult[]): EmbeddingResult {
  const [only] = results;
  if (results.length === 1 && only !== undefined) return only;
  return { vectors: results.flatMap(({ vectors }) => vectors), usage: sumUsage(results) };
}

/** A sum only when every part was reported: a partial sum would look like the whole. */
function sumUsage(results: readonly EmbeddingResult[]): TokenUsage | undefined {
  let inputTokens = 0;
  for (const { usage } of results) {
    if (usage === undefined) return undefined;
    inputTokens += usage.inputTokens;
  }
  return { inputTokens, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };
}
