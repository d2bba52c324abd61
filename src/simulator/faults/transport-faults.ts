import { gzipSync } from "node:zlib";

import {
  framesBeforeMiddle,
  isFrame,
  isPause,
  type Frame,
  type Reply,
  type Step,
} from "../frame.ts";
import type { Fault, FaultMode } from "./fault-mode.ts";
import { gzipBomb } from "./gzip-bomb.ts";
import { splitWrites } from "./split-writes.ts";

const defaultBombMebibytes = 1024;
const defaultEncodingLayers = 4;

/** Applies a fault that does not depend on the wire; for other faults, the reply is unchanged. */
export function withTransportFault(reply: Reply, { mode, argument }: Fault): Reply {
  return { ...reply, ...transportFaults[mode]?.(reply, argument) };
}

/** Returns the changed parts of the reply. */
type TransportFault = (reply: Reply, argument: number | undefined) => Partial<Reply>;

const transportFaults: Readonly<Partial<Record<FaultMode, TransportFault>>> = {
  "stall-mid": (reply, pauseMs = Number.POSITIVE_INFINITY) => ({
    steps: insertMidway(reply, { pauseMs }),
  }),
  dribble: ({ steps }, pauseMs = 0) => ({ steps: byteByByte(steps, pauseMs) }),
  "random-splits": ({ steps }, seed = 1) => ({ steps: splitWrites(steps, seed) }),
  "never-closes": ({ steps }) => ({ steps: unending(steps) }),
  "gzip-bomb": (reply, mebibytes = defaultBombMebibytes) => ({
    headers: { ...reply.headers, "content-encoding": "gzip" },
    steps: gzipBomb(reply, mebibytes),
  }),
  "chained-encodings": (reply, layers = defaultEncodingLayers) => chained(reply, layers),
};

/**
 * The first part of a reply: some frames of a stream, or half of a body that is one frame. Returns
 * the bytes that would come next.
 */
export function* firstHalf({ steps, isStreamed }: Reply): Generator<Frame, Uint8Array, void> {
  let count = 0;
  for (const step of steps) {
    if (isPause(step)) continue;
    if (!isStreamed) {
      const [first, second] = halves(step);
      yield first;
      return bytesOf(second);
    }
    if (count === framesBeforeMiddle) return bytesOf(step);
    yield step;
    count += 1;
  }
  return new Uint8Array(0);
}

function* insertMidway({ steps, isStreamed }: Reply, inserted: Step): Iterable<Step> {
  let count = 0;
  for (const step of steps) {
    count += 1;
    if (isStreamed || isPause(step)) {
      yield step;
      if (count === framesBeforeMiddle) yield inserted;
      continue;
    }
    const [first, second] = halves(step);
    yield first;
    yield inserted;
    yield second;
  }
}

function halves(frame: Frame): readonly [Frame, Frame] {
  const bytes = bytesOf(frame);
  const middle = Math.floor(bytes.length / 2);
  return [
    { data: bytes.slice(0, middle), tokens: 0 },
    { ...frame, data: bytes.slice(middle) },
  ];
}

/** The tokens of a frame count with its last byte. */
function* byteByByte(steps: Iterable<Step>, pauseMs: number): Iterable<Step> {
  for (const step of steps) {
    if (isPause(step)) {
      yield step;
      continue;
    }
    const bytes = bytesOf(step);
    for (let index = 0; index < bytes.length; index++) {
      const data = bytes.slice(index, index + 1);
      yield index === bytes.length - 1 ? { ...step, data } : { data, tokens: 0 };
      if (pauseMs > 0) yield { pauseMs };
    }
  }
}

function* unending(steps: Iterable<Step>): Iterable<Step> {
  yield* steps;
  yield { pauseMs: Number.POSITIVE_INFINITY };
}

function chained(reply: Reply, layers: number): Partial<Reply> {
  const frames = [...reply.steps].filter(isFrame);
  let bytes: Uint8Array<ArrayBuffer> = Buffer.concat(frames.map(bytesOf));
  for (let layer = 0; layer < layers; layer++) bytes = new Uint8Array(gzipSync(bytes));
  const tokens = frames.reduce((total, frame) => total + frame.tokens, 0);
  const hasUsage = frames.some((frame) => frame.hasUsage === true);
  const encodings = Array.from({ length: layers }, () => "gzip").join(", ");
  return {
    headers: { ...reply.headers, "content-encoding": encodings },
    steps: [{ data: bytes, tokens, hasUsage }],
  };
}

export function bytesOf(frame: Frame): Uint8Array<ArrayBuffer> {
  return typeof frame.data === "string" ? new TextEncoder().encode(frame.data) : frame.data;
}
