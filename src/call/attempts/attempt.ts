import type { AdjustedFields, ChatEvent } from "../../domain/chat/chat.ts";
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
  UpstreamRequest,
} from "../../upstreams/adapter.ts";
import type { AnswerMemory, Call } from "../../snapshot/call.ts";
import type { Place } from "../../admission/capacity/place.ts";
import type { Destination } from "../../routing/candidates.ts";
import { EventReader, type OpenStream } from "../../upstream-client/event-reader.ts";
import { untilEnded } from "../hooks.ts";
import type { Meter } from "../metering/meter.ts";
import { timeoutsOf, wholeTimeouts } from "../../upstream-client/transport.ts";
import { readVectors, sendPlainer } from "../../upstream-client/read-vectors.ts";
import { send, type UpstreamAnswer } from "../../upstream-client/send.ts";
import type { CallServices } from "../services.ts";
import { traceparentOf } from "../../domain/tracing.ts";
import type { RunningAttempt } from "./running-attempt.ts";

export interface AttemptContext {
  readonly call: Call;
  readonly meter: Meter;
  readonly services: CallServices;
  /** The place that the attempt holds; undefined for a request that belongs to no attempt. */
  readonly place?: Place;
  /** Whether another target could accept a request that this one refuses. */
  readonly hasOther?: boolean;
  /** The plan's cap on output, if the caller set none. */
  readonly outputCap?: number | undefined;
  /** Called when the hooks of a call let a request go. */
  readonly onSent?: (() => void) | undefined;
  /** The span of the attempt; undefined where no traces are sent. */
  readonly span?: AttemptSpan | undefined;
  /** The part of the call that its request is for, from 0 to 1; undefined: all of it. */
  readonly share?: number;
  /** Called with the fields that were changed for the target. */
  readonly onAdjusted?: (adjusted: AdjustedFields) => void;
}

/** Sends a request and returns what its whole answer says. */
export async function attemptWhole<Result>(
  exchange: EncodedRequest<Result>,
  candidate: Destination,
  context: AttemptContext,
): Promise<Result> {
  const answer = await sendTo(exchange, candidate, context);
  const { call, share = 1 } = context;
  const { settings } = call.snapshot;
  const { kind } = candidate.model;
  const memory = share === 1 ? call.answerMemory : memoryOfAll(call, share);
  const reading = answer.readAll(settings.answerLimitBytes[kind], memory);
  const body =
    reading instanceof Promise ? await reading.catch((error) => unread(error, context)) : reading;
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
  candidate: Destination,
  { context, ...reading }: VectorReading & { readonly context: AttemptContext },
): Promise<EmbeddingResult> {
  return sendPlainer(exchange, async (sent) => {
    const answer = await sendTo(sent, candidate, context);
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
      return unread(error, { ...context, share: reading.inputs / reading.callInputs });
    }
  });
}

/** An answer that the gateway has no memory for was generated all the same. */
function unread(error: unknown, { call, meter, share = 1 }: AttemptContext): never {
  if (error instanceof GatewayError && !call.signal.aborted) {
    const { message } = error;
    meter.attemptFailed({ kind: "answer-too-large", message }, { share, elapsedMs: 0 });
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
  candidate: Destination,
  context: AttemptContext,
): Promise<OpenStream<ChatEvent>> {
  const answer = await sendTo(exchange, candidate, context);
  const { malformedEvents, answerLimitBytes, chatAnswerValues } = context.call.snapshot.settings;
  const decoder = exchange.newDecoder({
    malformedEvents,
    answerLimitBytes: answerLimitBytes[candidate.model.kind],
    answerValues: chatAnswerValues,
  });
  const onMalformed = malformedReporter(candidate, context);
  const rest = new EventReader({ answer, decoder, onMalformed });
  const first = await nextOf(rest);
  if (first === undefined) throw brokenAnswer("the answer had no content");
  return { first, rest };
}

/** Outside `attemptStream`, whose closures would keep the request in memory (see `watchdogOf`). */
function malformedReporter(
  candidate: Destination,
  { call, services }: AttemptContext,
): (count: number) => void {
  return (count) => services.onMalformedEvents(call, candidate, count);
}

function sendTo(
  exchange: EncodedRequest<unknown> | EncodedEmbeddingRequest | EncodedStreamRequest<unknown>,
  candidate: Destination,
  { call, services, place, onAdjusted, onSent, span }: AttemptContext,
): Promise<UpstreamAnswer> {
  const { request: encoded, adjusted } = exchange;
  if (adjusted !== undefined) onAdjusted?.(adjusted);
  // A request that belongs to no attempt, such as one that counts tokens, is answered at once.
  const isWhole = "newDecoder" in exchange ? exchange.isAnsweredWhole : place !== undefined;
  const timeouts = isWhole ? wholeTimeouts(timeoutsOf(candidate)) : timeoutsOf(candidate);
  const options = {
    upstream: candidate.upstream,
    timeouts,
    endsAt: call.receivedAt + timeouts.totalMs,
    clock: services.clock,
    transport: services.transport,
    callerSignal: call.signal,
    memory: call.memory,
    places: place ?? services.capacity.requestPlaces(candidate.upstream, { isBound: true }),
  };
  const { hooks, signal } = call;
  const traced = withTrace(encoded, candidate, { origin: call.origin, span });
  if (hooks === undefined) return send(traced, options);
  return untilEnded(hooks.beforeSend(traced, candidate), signal).then((request) => {
    onSent?.();
    return send(request, options);
  });
}

/**
 * Includes the caller's own request id, and the trace context of the attempt or else of the caller,
 * if the upstream accepts them.
 */
function withTrace(
  request: UpstreamRequest,
  { upstream: { adapter } }: Destination,
  { origin, span }: Pick<Call, "origin"> & Pick<AttemptContext, "span">,
): UpstreamRequest {
  span?.onUrl(request.url);
  const headers = traceHeadersFor(origin?.trace, adapter.traceHeaders, span?.traceparent);
  return headers === undefined
    ? request
    : { ...request, headers: { ...request.headers, ...headers } };
}

interface AttemptSpan {
  readonly traceparent: string;
  /** Called with the address of each request. */
  readonly onUrl: (url: string) => void;
}

/** The span of an attempt; undefined where no traces are sent. */
export function spanOf({ id, origin }: Call, attempt: RunningAttempt): AttemptSpan | undefined {
  const spans = origin?.spans;
  if (spans === undefined) return undefined;
  const onUrl = (url: string): void => attempt.sentTo(url);
  return { traceparent: traceparentOf(id, spans, attempt.number), onUrl };
}
