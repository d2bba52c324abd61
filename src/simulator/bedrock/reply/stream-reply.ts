import type { AnswerEvent } from "../../answer/answer-event.ts";
import { lastUserText } from "../../answer/prompt.ts";
import { hashText, Random } from "../../answer/random.ts";
import type { Clock } from "../../../domain/clock.ts";
import { frameType } from "../../faults/bedrock-modes.ts";
import type { Fault } from "../../faults/fault-mode.ts";
import { framesBeforeMiddle, type Reply } from "../../frame.ts";
import type { JsonRecord } from "../../read-json.ts";
import type { BedrockError } from "../bedrock-error.ts";
import type { ConverseRequest } from "../request/converse-request.ts";
import { withEventFault } from "../faults/event-faults.ts";
import { eventFrame, exceptionFrame, unknownEvent } from "./event-frames.ts";
import { withFrameFault, type BinaryFrame } from "../faults/frame-faults.ts";
import { streamEvents } from "./stream-events.ts";

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
  const events = streamEvents(request, answer, latencyMs);
  return eventStreamReply(withEventFault(events, fault), request, fault);
}

/** An event before it is framed. */
export interface FramedEvent {
  readonly type: string;
  readonly body: JsonRecord;
  /** The number of completion tokens in it. */
  readonly tokens: number;
  /** Default: whether the body has `usage`. */
  readonly hasUsage?: boolean;
}

/** A stream of events; applies the faults of frames. */
export function eventStreamReply(
  events: Iterable<FramedEvent>,
  request: ConverseRequest,
  fault: Fault,
): Reply {
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
  events: Iterable<FramedEvent>,
  random: Random,
  { mode }: Fault,
): Generator<BinaryFrame, void, void> {
  let count = 0;
  for (const { type, body, tokens, hasUsage = body["usage"] !== undefined } of events) {
    count += 1;
    if (count > framesBeforeMiddle && random.chance(unknownEventShare)) {
      yield { data: unknownEvent(padding(random)), tokens: 0 };
    }
    const json = JSON.stringify({ ...body, p: padding(random) });
    const isBroken = mode === "bad-json" && count === framesBeforeMiddle;
    const data = eventFrame(type, isBroken ? json.slice(0, json.length / 2) : json);
    yield { data, tokens, hasUsage };
  }
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/** The provider hides the length of words with padding: a prefix of the alphabet. */
function padding(random: Random): string {
  return letters.slice(0, random.integer(1, letters.length));
}
