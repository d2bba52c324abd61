import type { Fault, FaultMode } from "../../faults/fault-mode.ts";
import { framesBeforeMiddle, type Frame, type Step } from "../../frame.ts";
import {
  checksumLengthBytes,
  encodePrelude,
  errorFrame,
  exceptionFrame,
  preludeLengthBytes,
  sealFrame,
  unknownEvent,
} from "../reply/event-frames.ts";
import { streamException, type StreamException } from "../exceptions.ts";

export type BinaryFrame = Frame & { readonly data: Uint8Array<ArrayBuffer> };

/** Damages, cuts or replaces frames, depending on the fault. */
export function withFrameFault(frames: Iterable<BinaryFrame>, fault: Fault): Iterable<Step> {
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
