import { gzipSync } from "node:zlib";
import {
  type Frame,
  framesBeforeMiddle,
  isFrame,
  isPause,
  type Reply,
  type Step,
} from "../reply.ts";
import type { Fault, FaultMode } from "./fault-modes.ts";
import { gzipBomb } from "./bodies.ts";
import { type RawConnection, tlsAlert } from "../front.ts";
import type { OpenCall } from "../call.ts";
import { wait } from "../time.ts";
import { Random } from "../answer/random.ts";

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
  dribble: ({ steps }, pauseMs = 0) => ({ steps: inPieces(steps, () => 1, pauseMs) }),
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
function* firstHalf({ steps, isStreamed }: Reply): Generator<Frame, Uint8Array, void> {
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
function* inPieces(
  steps: Iterable<Step>,
  nextSize: () => number,
  pauseMs: number,
): Generator<Step, void, void> {
  for (const step of steps) {
    if (isPause(step)) {
      yield step;
      continue;
    }
    const bytes = bytesOf(step);
    for (let start = 0; start < bytes.length;) {
      const end = Math.min(bytes.length, start + nextSize());
      const data = bytes.slice(start, end);
      yield end === bytes.length ? { ...step, data } : { data, tokens: 0 };
      if (pauseMs > 0) yield { pauseMs };
      start = end;
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

function bytesOf(frame: Frame): Uint8Array<ArrayBuffer> {
  return typeof frame.data === "string" ? new TextEncoder().encode(frame.data) : frame.data;
}

/** Lets the caller read what came before a reset, which discards unread bytes. */
const resetDelayMs = 30;

type RawFault = (sending: RawSending) => Promise<void>;

interface RawSending {
  readonly connection: RawConnection;
  readonly reply: Reply;
  readonly call: OpenCall;
}

/** Serves a fault that needs the raw connection; undefined for other faults. */
export function rawFault({ mode }: Fault): RawFault | undefined {
  return rawFaults[mode];
}

const rawFaults: Readonly<Partial<Record<FaultMode, RawFault>>> = {
  "cut-before-headers": async ({ connection }) => connection.end(),
  "reset-before-headers": async ({ connection }) => connection.reset(),
  "tls-fail": async ({ connection }) => {
    await connection.write(tlsAlert);
    connection.end();
  },
  "cut-after-headers": async (sending) => {
    await writeHead(sending);
    sending.connection.end();
  },
  "cut-mid-chunk": async (sending) => {
    await writeHead(sending);
    const next = await writeFirstHalf(sending);
    // The announced length is larger than what follows.
    await writeText(sending.connection, `${Math.max(2, next.length).toString(16)}\r\n`);
    await sending.connection.write(next.slice(0, Math.ceil(next.length / 2)));
    sending.connection.end();
  },
  reset: async (sending) => {
    await writeHead(sending);
    await writeFirstHalf(sending);
    await wait(resetDelayMs, sending.connection.closed);
    sending.connection.reset();
  },
};

async function writeHead({ connection, reply, call }: RawSending): Promise<void> {
  call.update({ status: reply.status });
  const headers = Object.entries({ ...reply.headers, "transfer-encoding": "chunked" });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  await writeText(connection, `HTTP/1.1 ${reply.status} OK\r\n${lines.join("")}\r\n`);
}

/** Resolves to the bytes that would come next. */
async function writeFirstHalf({ connection, reply, call }: RawSending): Promise<Uint8Array> {
  const frames = firstHalf(reply);
  for (let next = frames.next(); ; next = frames.next()) {
    if (next.done === true) return next.value;
    const bytes = bytesOf(next.value);
    await writeText(connection, `${bytes.length.toString(16)}\r\n`);
    await connection.write(bytes);
    await writeText(connection, "\r\n");
    call.countSent(next.value);
  }
}

function writeText(connection: RawConnection, text: string): Promise<void> {
  return connection.write(new TextEncoder().encode(text));
}

/**
 * Cuts an answer into writes regardless of its frames, single bytes often enough to split every
 * number of a prelude. The same seed cuts at the same places.
 */
export function splitWrites(steps: Iterable<Step>, seed: number): Generator<Step, void, void> {
  const random = new Random(seed);
  const nextSize = (): number => (random.chance(0.3) ? 1 : random.integer(2, 300));
  return inPieces(steps, nextSize, 0);
}
