import type { ChatEvent } from "../../domain/chat/answer.ts";
import { mostAnswerDepth, scanJson } from "../../domain/chat/json-scan.ts";
import { nextOf } from "../../domain/waiting/flow.ts";
import { oneTurnBytes } from "../../domain/waiting/wait.ts";
import { releaseBytes } from "../../domain/chat/bytes.ts";
import { mayHoldHalves, replaceHalves } from "../../domain/chat/well-formed.ts";
import { traceHeadersFor } from "../../domain/request-trace.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import {
  answerTooLarge,
  brokenAnswer,
  UpstreamFailure,
} from "../../domain/errors/upstream-failure.ts";
import type { EmbeddingResult } from "../../domain/chat/embedding.ts";
import type {
  EncodedEmbeddingRequest,
  EncodedRequest,
  EncodedStreamRequest,
} from "../../upstreams/adapter.ts";
import type { AnswerMemory, Call } from "../../snapshot/call.ts";
import { EventReader, type OpenStream } from "../../upstream-client/event-reader.ts";
import { untilEnded } from "../hooks.ts";
import { timeoutsOf, wholeTimeouts } from "../../upstream-client/transport.ts";
import { readVectors, sendPlainer } from "../../upstream-client/read-vectors.ts";
import { send, type UpstreamAnswer } from "../../upstream-client/send.ts";
import type { AttemptContext } from "./attempt.ts";

/** Sends a request and returns what its whole answer says. */
export async function attemptWhole<Result>(
  exchange: EncodedRequest<Result>,
  context: AttemptContext,
): Promise<Result> {
  const answer = await sendTo(exchange, context);
  const { call, share, candidate } = context;
  const { settings } = call.snapshot;
  const { kind } = candidate.model;
  const memory = share === 1 ? call.answerMemory : memoryOfAll(call, share);
  const reading = answer.readAll(settings.answerLimitBytes[kind], memory);
  const body =
    reading instanceof Promise
      ? await reading.catch((error) => unread(error, context, share))
      : reading;
  call.answerMemory?.shrinkTo(Math.ceil(body.byteLength / share));
  try {
    // A short answer is parsed in no time, so it is not checked first.
    const isLong = kind === "chat" && body.byteLength > oneTurnBytes;
    if (isLong) await checkValues(body, settings.chatAnswerValues);
    const result = exchange.decode({ headers: answer.headers, body });
    if (kind === "chat" && mayHoldHalves(body)) replaceHalves(result);
    return result;
  } catch (error) {
    if (!(error instanceof UpstreamFailure)) throw error;
    throw answer.explained(error.withUsage(exchange.usageIn?.(body)));
  } finally {
    releaseBytes(body);
  }
}

/** The memory is that of the call, of which an answer is a part. */
function memoryOfAll({ answerMemory }: Call, share: number): Pick<AnswerMemory, "reserve"> {
  return { reserve: (bytes) => answerMemory?.reserve(Math.ceil(bytes / share)) };
}

/** What is known of the vectors that an answer will have. */
interface VectorReading {
  /** The inputs of the request. */
  readonly inputs: number;
  /** The inputs of the call, for whose vectors memory is taken once. */
  readonly callInputs: number;
}

/** Sends a request and returns the vectors of its answer, which is read as it arrives. */
export async function attemptVectors(
  exchange: EncodedEmbeddingRequest,
  context: AttemptContext,
  reading: VectorReading,
): Promise<EmbeddingResult> {
  return sendPlainer(exchange, async (sent) => {
    const answer = await sendTo(sent, context);
    try {
      const { snapshot, answerMemory: memory } = context.call;
      const { settings } = snapshot;
      const limitBytes = settings.answerLimitBytes.embedding;
      const read = readVectors(answer, limitBytes, { ...reading, memory });
      const scanned = read instanceof Promise ? await read : read;
      const isLong = scanned.json.length > oneTurnBytes;
      if (isLong) await checkValues(Buffer.from(scanned.json), settings.chatAnswerValues);
      return sent.decode({ headers: answer.headers, ...scanned });
    } catch (error) {
      if (error instanceof UpstreamFailure) throw answer.explained(error);
      return unread(error, context, reading.inputs / reading.callInputs);
    }
  });
}

/** An answer that the gateway has no memory for was generated all the same. */
function unread(error: unknown, context: AttemptContext, share: number): never {
  const { signal, meter, candidate } = context;
  if (error instanceof GatewayError && !signal.aborted) {
    const { message } = error;
    const unanswered = { target: candidate.target, share, elapsedMs: 0 };
    meter.attemptFailed({ kind: "answer-too-large", message }, unanswered);
  }
  throw error;
}

/** Refuses an answer that would take a parser long. */
async function checkValues(body: Uint8Array, jsonValues: number): Promise<void> {
  try {
    await scanJson(body, { jsonDepth: mostAnswerDepth, jsonValues });
  } catch (error) {
    throw answerTooLarge(`more than ${jsonValues} values, or nests too deeply`, error);
  }
}

/** Sends a request and resolves when the first events of its answer are decoded. */
export async function attemptStream(
  exchange: EncodedStreamRequest<ChatEvent>,
  context: AttemptContext,
): Promise<OpenStream<ChatEvent>> {
  const answer = await sendTo(exchange, context);
  const { malformedEvents, answerLimitBytes, chatAnswerValues } = context.call.snapshot.settings;
  const decoder = exchange.newDecoder({
    malformedEvents,
    answerLimitBytes: answerLimitBytes[context.candidate.model.kind],
    answerValues: chatAnswerValues,
  });
  const onMalformed = malformedReporter(context);
  const { tagEvents } = exchange;
  const rest = new EventReader({ answer, decoder, tagEvents, onMalformed });
  const first = await nextOf(rest);
  if (first === undefined) throw brokenAnswer("the answer had no content");
  return { first, rest };
}

/** Outside `attemptStream`: closures of an asynchronous function would keep the body of its request. */
function malformedReporter({ call, candidate, services }: AttemptContext) {
  return (count: number): void => services.onMalformedEvents(call, candidate, count);
}

function sendTo(
  exchange: EncodedRequest<unknown> | EncodedEmbeddingRequest | EncodedStreamRequest<ChatEvent>,
  { call, candidate, services, signal, attempt }: AttemptContext,
): Promise<UpstreamAnswer> {
  const { request: encoded, adjusted } = exchange;
  if (adjusted !== undefined) attempt?.adjust(adjusted);
  // A request that belongs to no attempt, such as one that counts tokens, is answered at once.
  const isWhole = "newDecoder" in exchange ? exchange.isAnsweredWhole : attempt !== undefined;
  const timeouts = isWhole ? wholeTimeouts(timeoutsOf(candidate)) : timeoutsOf(candidate);
  const { upstream } = candidate;
  const options = {
    upstream,
    timeouts,
    endsAt: call.receivedAt + timeouts.totalMs,
    clock: services.clock,
    transport: services.transport,
    callerSignal: signal,
    memory: call.memory,
    places: attempt?.place ?? services.capacity.requestPlaces(upstream, { isBound: true }),
  };
  const { hooks, origin } = call;
  attempt?.sentTo(encoded.url);
  // The caller's own request id, and the trace context of the attempt or else of the caller.
  const { traceHeaders: taken } = upstream.adapter;
  const headers = traceHeadersFor(origin?.trace, taken, attempt?.traceparent);
  const traced =
    headers === undefined ? encoded : { ...encoded, headers: { ...encoded.headers, ...headers } };
  if (hooks === undefined) return send(traced, options);
  return untilEnded(hooks.beforeSend(traced, candidate), signal).then((request) => {
    attempt?.sent();
    return send(request, options);
  });
}
