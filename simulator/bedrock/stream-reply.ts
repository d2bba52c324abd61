import type { AnswerEvent, ContentEvent, FinishEvent } from "../answer/answer.ts";
import { lastUserText } from "../answer/prompt.ts";
import { hashText, Random } from "../answer/random.ts";
import type { Clock } from "../time.ts";
import { frameType } from "../faults/bedrock-modes.ts";
import type { Fault, FaultMode } from "../faults/fault-modes.ts";
import { type Frame, framesBeforeMiddle, type Reply, type Step } from "../reply.ts";
import { type JsonRecord, recordOf } from "../json.ts";
import { type BedrockError, streamException, type StreamException } from "./errors.ts";
import type { ConverseRequest } from "./read-request.ts";
import {
  checksumLengthBytes,
  encodePrelude,
  errorFrame,
  eventFrame,
  exceptionFrame,
  preludeLengthBytes,
  sealFrame,
  unknownEvent,
} from "./event-frames.ts";
import {
  echoedFields,
  reasoningDelta,
  reasoningEnd,
  responseFields,
  stopReasonOf,
  toolUseId,
  usageBody,
} from "./converse-reply.ts";
import { inflatedUsage } from "../faults/bodies.ts";

const streamHeaders = { "content-type": "application/vnd.amazon.eventstream" };

/** The share of events that come after an event of an unknown type. */
const unknownEventShare = 0.03;

/** Answers ConverseStream with frames that are generated lazily. */
export function converseStreamReply(
  request: ConverseRequest,
  answer: Iterable<AnswerEvent>,
  { fault, clock }: { readonly fault: Fault; readonly clock: Clock },
): Reply {
  const startedAtMs = clock.monotonic();
  const latencyMs = (): number => Math.round(clock.monotonic() - startedAtMs);
  const events = withEventFault(streamEvents(request, answer, latencyMs), fault);
  const random = new Random(hashText(`${request.model} ${lastUserText(request.prompt)}`));
  const frames = encodeEvents(events, random, fault);
  return {
    status: 200,
    headers: streamHeaders,
    steps: withFrameFault(frames, fault),
    isStreamed: true,
    filler: (sizeBytes) => unknownEvent("x".repeat(sizeBytes)),
  };
}

/** A 200 with the refusal as its only frame. */
export function refusingStreamReply({ name, message, fields }: BedrockError): Reply {
  const data = exceptionFrame(frameType(name), JSON.stringify({ message, ...fields }));
  return { status: 200, headers: streamHeaders, steps: [{ data, tokens: 0 }], isStreamed: true };
}

function* encodeEvents(
  events: Iterable<StreamEvent>,
  random: Random,
  { mode }: Fault,
): Generator<BinaryFrame, void, void> {
  let count = 0;
  for (const { type, body, tokens } of events) {
    count += 1;
    if (count > framesBeforeMiddle && random.chance(unknownEventShare)) {
      yield { data: unknownEvent(padding(random)), tokens: 0 };
    }
    const json = JSON.stringify({ ...body, p: padding(random) });
    const isBroken = mode === "bad-json" && count === framesBeforeMiddle;
    const data = eventFrame(type, isBroken ? json.slice(0, json.length / 2) : json);
    yield { data, tokens, hasUsage: body["usage"] !== undefined };
  }
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/** The provider hides the length of words with padding: a prefix of the alphabet. */
function padding(random: Random): string {
  return letters.slice(0, random.integer(1, letters.length));
}

/** One event of a stream before it is framed. */
interface StreamEvent {
  readonly type:
    | "messageStart"
    | "contentBlockStart"
    | "contentBlockDelta"
    | "contentBlockStop"
    | "messageStop"
    | "metadata";
  readonly body: JsonRecord;
  /** The number of completion tokens in it. */
  readonly tokens: number;
}

/** The events of an answer in the provider's order. `latencyMs` is called at the end. */
function* streamEvents(
  request: ConverseRequest,
  answer: Iterable<AnswerEvent>,
  latencyMs: () => number,
): Generator<StreamEvent, void, void> {
  yield { type: "messageStart", body: { role: "assistant" }, tokens: 0 };
  const blocks = new BlockWriter(request);
  for (const part of answer) {
    if (part.kind !== "finish") {
      yield* blocks.write(part);
      continue;
    }
    yield* blocks.close();
    yield messageStop(part, request);
    yield metadata(part, request, latencyMs());
  }
}

/** Puts each kind of content, and each tool call, into its own block. */
class BlockWriter {
  readonly #request: ConverseRequest;
  #index = -1;
  #open: string | undefined;
  #thoughts = "";
  /** Tokens of thoughts that the caller does not see. */
  #hiddenTokens = 0;

  constructor(request: ConverseRequest) {
    this.#request = request;
  }

  *write(part: ContentEvent): Generator<StreamEvent, void, void> {
    const block = blockOf(part);
    if (block !== this.#open) {
      yield* this.close();
      this.#open = block;
      this.#index += 1;
    }
    const { tokens } = part;
    switch (part.kind) {
      case "reasoning": {
        this.#thoughts += part.piece;
        const shown = reasoningDelta(part.piece, this.#request);
        if (shown === undefined) this.#hiddenTokens += tokens;
        else yield this.#delta({ reasoningContent: shown }, tokens);
        break;
      }
      case "text":
      case "refusal":
        yield this.#delta({ text: part.piece }, tokens);
        break;
      case "call": {
        const start = { toolUse: { toolUseId: toolUseId(part.id), name: part.name } };
        const body = { contentBlockIndex: this.#index, start };
        yield { type: "contentBlockStart", body, tokens };
        break;
      }
      case "input":
        // A tool without arguments gets no JSON at all.
        yield this.#delta({ toolUse: { input: part.piece === "{}" ? "" : part.piece } }, tokens);
        break;
    }
  }

  *close(): Generator<StreamEvent, void, void> {
    if (this.#open === undefined) return;
    if (this.#open === "reasoning") {
      const end = { reasoningContent: reasoningEnd(this.#thoughts, this.#request) };
      yield this.#delta(end, this.#hiddenTokens);
      this.#hiddenTokens = 0;
      this.#thoughts = "";
    }
    yield { type: "contentBlockStop", body: { contentBlockIndex: this.#index }, tokens: 0 };
    this.#open = undefined;
  }

  #delta(delta: JsonRecord, tokens: number): StreamEvent {
    return { type: "contentBlockDelta", body: { contentBlockIndex: this.#index, delta }, tokens };
  }
}

function blockOf(part: ContentEvent): string {
  if (part.kind === "call" || part.kind === "input") return `call ${part.index}`;
  return part.kind === "reasoning" ? "reasoning" : "text";
}

function messageStop(finish: FinishEvent, request: ConverseRequest): StreamEvent {
  const fields = responseFields(finish, request);
  const additional = fields === undefined ? {} : { additionalModelResponseFields: fields };
  const body = { stopReason: stopReasonOf(finish, request), ...additional };
  return { type: "messageStop", body, tokens: 0 };
}

function metadata(finish: FinishEvent, request: ConverseRequest, latencyMs: number): StreamEvent {
  const body = {
    usage: usageBody(request, finish.completionTokens),
    metrics: { latencyMs },
    ...echoedFields(request),
  };
  return { type: "metadata", body, tokens: 0 };
}

/** Omits, repeats or falsifies events, depending on the fault. */
function withEventFault(events: Iterable<StreamEvent>, { mode }: Fault): Iterable<StreamEvent> {
  const replace = eventFaults[mode];
  return replace === undefined ? events : Iterator.from(events).flatMap(replace);
}

/** Returns what the caller gets in place of an event. */
type EventFault = (event: StreamEvent) => readonly StreamEvent[];

const eventFaults: Readonly<Partial<Record<FaultMode, EventFault>>> = {
  "ok-no-usage": (event) => [withoutUsage(event)],
  "wrong-usage": (event) => [withWrongUsage(event)],
  "usage-twice": (event) => (event.type === "metadata" ? [event, event] : [event]),
  "missing-finish-reason": (event) => (event.type === "messageStop" ? [] : [event]),
  "no-message-stop": (event) =>
    event.type === "messageStop" || event.type === "metadata" ? [] : [event],
  "no-metadata": (event) => (event.type === "metadata" ? [] : [event]),
  "no-done": (event) => (event.type === "metadata" ? [] : [event]),
  "role-every-chunk": (event) =>
    event.type === "contentBlockDelta" ? [messageStart, event] : [event],
};

const messageStart: StreamEvent = { type: "messageStart", body: { role: "assistant" }, tokens: 0 };

function withoutUsage(event: StreamEvent): StreamEvent {
  const { usage, ...body } = event.body;
  return usage === undefined ? event : { ...event, body };
}

function withWrongUsage(event: StreamEvent): StreamEvent {
  const { usage } = event.body;
  if (usage === undefined) return event;
  return { ...event, body: { ...event.body, usage: inflatedUsage(recordOf(usage)) } };
}

type BinaryFrame = Frame & { readonly data: Uint8Array<ArrayBuffer> };

/** Damages, cuts or replaces frames, depending on the fault. */
function withFrameFault(frames: Iterable<BinaryFrame>, fault: Fault): Iterable<Step> {
  const { mode, argument } = fault;
  const exception = streamException(mode);
  if (exception !== undefined) return endInException(frames, exception, argument);
  return frameFaults[mode]?.(frames, argument) ?? frames;
}

type FrameFault = (frames: Iterable<BinaryFrame>, argument: number | undefined) => Iterable<Step>;

const frameFaults: Readonly<Partial<Record<FaultMode, FrameFault>>> = {
  comments: (frames) =>
    Iterator.from(frames).flatMap((frame) => [
      { data: unknownEvent("a comment"), tokens: 0 },
      frame,
    ]),
  "bad-prelude-crc": damaging((frame) => flipLastByte(frame, preludeLengthBytes)),
  "bad-message-crc": damaging((frame) => flipLastByte(frame, frame.length)),
  "undersized-length": damaging((frame) => withLengths(frame, 8, 0)),
  "bad-headers-length": damaging((frame) => withLengths(frame, frame.length, frame.length)),
  "truncated-frame": endingIn((next) => next.slice(0, Math.ceil(next.length / 2))),
  "cut-in-length-prefix": endingIn((next) => next.slice(0, 2)),
  "transport-error-frame": endingIn(() => errorFrame("InternalError", "The stream was lost.")),
  // Silence follows, so a reader that does not refuse the length hangs.
  "oversized-length": (frames, lengthBytes = 0xffff_ffff) =>
    endAt(frames, framesBeforeMiddle, () => [
      { data: encodePrelude(lengthBytes, 0), tokens: 0 },
      { pauseMs: Number.POSITIVE_INFINITY },
    ]),
};

function endInException(
  frames: Iterable<BinaryFrame>,
  { type, error, isFirst }: StreamException,
  place = framesBeforeMiddle,
): Iterable<Step> {
  const data = exceptionFrame(type, JSON.stringify({ message: error.message, ...error.fields }));
  return endAt(frames, isFirst ? 0 : place, () => [{ data, tokens: 0 }]);
}

/** Ends the stream with these bytes in place of the next frame. */
function endingIn(last: (next: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>): FrameFault {
  return (frames, place = framesBeforeMiddle) =>
    endAt(frames, place, (next) => [{ data: last(next), tokens: 0 }]);
}

/** An answer with fewer frames gets the ending after its last one. */
function* endAt(
  frames: Iterable<BinaryFrame>,
  place: number,
  ending: (next: Uint8Array<ArrayBuffer>) => readonly Step[],
): Iterable<Step> {
  let count = 0;
  for (const frame of frames) {
    if (count === place) {
      yield* ending(frame.data);
      return;
    }
    count += 1;
    yield frame;
  }
  yield* ending(encodePrelude(preludeLengthBytes + checksumLengthBytes, 0));
}

/** Damages one frame and sends the others unchanged. Its tokens do not count as sent. */
function damaging(damage: (frame: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>): FrameFault {
  return (frames, place = framesBeforeMiddle) =>
    Iterator.from(frames).map((frame, index) =>
      index === place ? { data: damage(frame.data), tokens: 0 } : frame,
    );
}

function flipLastByte(frame: Uint8Array<ArrayBuffer>, end: number): Uint8Array<ArrayBuffer> {
  return frame.map((byte, index) => (index === end - 1 ? byte ^ 1 : byte));
}

/** Wrong lengths with correct checksums. */
function withLengths(
  frame: Uint8Array<ArrayBuffer>,
  totalLengthBytes: number,
  headersLengthBytes: number,
): Uint8Array<ArrayBuffer> {
  const copy = frame.slice();
  copy.set(encodePrelude(totalLengthBytes, headersLengthBytes));
  return sealFrame(copy);
}
