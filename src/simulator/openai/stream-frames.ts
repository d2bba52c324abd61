import type { Fault, FaultMode } from "../faults/fault-mode.ts";
import { inflatedUsage } from "../faults/inflated-usage.ts";
import type { Frame } from "../frame.ts";
import { isRecord, listOf, recordOf, type JsonRecord } from "../read-json.ts";
import type { Chunk } from "./chunks.ts";
import { serverError } from "./refusal-faults.ts";
import { errorText } from "./wire-error.ts";

/** Chunks as server-sent events, spoiled as the fault says. */
export function streamFrames(chunks: Iterable<Chunk>, fault: Fault): Iterable<Frame> {
  const spoilChunks = chunkFaults[fault.mode];
  const frames = plainFrames(spoilChunks === undefined ? chunks : spoilChunks(chunks), fault.mode);
  const spoilFrames = frameFaults[fault.mode];
  return spoilFrames === undefined ? frames : spoilFrames(frames);
}

type ChunkFault = (chunks: Iterable<Chunk>) => Iterable<Chunk>;
type FrameFault = (frames: Iterable<Frame>) => Iterable<Frame>;

const chunkFaults: Readonly<Partial<Record<FaultMode, ChunkFault>>> = {
  "ok-no-usage": (chunks) => without(chunks, "usage"),
  "missing-finish-reason": (chunks) => without(chunks, "finish"),
  "wrong-usage": (chunks) => mapped(chunks, inflateUsage),
  "role-every-chunk": (chunks) => mapped(chunks, repeatRole),
  "usage-twice": repeatUsage,
};

const frameFaults: Readonly<Partial<Record<FaultMode, FrameFault>>> = {
  "bad-json": breakOne,
  "error-event-mid-stream": endInError,
  "crlf-framing": endLinesInCrlf,
  comments: addComments,
};

const framesBeforeMiddle = 3;

function* plainFrames(chunks: Iterable<Chunk>, mode: FaultMode): Generator<Frame, void, void> {
  for (const { kind, body, tokens } of chunks) {
    yield { data: `data: ${JSON.stringify(body)}\n\n`, tokens, hasUsage: kind === "usage" };
  }
  if (mode !== "no-done") yield { data: "data: [DONE]\n\n", tokens: 0 };
}

function* without(chunks: Iterable<Chunk>, kind: Chunk["kind"]): Iterable<Chunk> {
  for (const chunk of chunks) if (chunk.kind !== kind) yield chunk;
}

function* mapped(chunks: Iterable<Chunk>, change: (chunk: Chunk) => Chunk): Iterable<Chunk> {
  for (const chunk of chunks) yield change(chunk);
}

function* repeatUsage(chunks: Iterable<Chunk>): Iterable<Chunk> {
  for (const chunk of chunks) {
    yield chunk;
    if (chunk.kind === "usage") yield chunk;
  }
}

function inflateUsage(chunk: Chunk): Chunk {
  const usage = chunk.body["usage"];
  if (!isRecord(usage)) return chunk;
  return { ...chunk, body: { ...chunk.body, usage: inflatedUsage(usage) } };
}

function repeatRole(chunk: Chunk): Chunk {
  const choices = listOf(chunk.body["choices"]).map((choice): JsonRecord => {
    const { delta, ...rest } = recordOf(choice);
    return { ...rest, delta: { role: "assistant", ...recordOf(delta) } };
  });
  return { ...chunk, body: { ...chunk.body, choices } };
}

function* breakOne(frames: Iterable<Frame>): Iterable<Frame> {
  let count = 0;
  for (const frame of frames) {
    count += 1;
    const text = String(frame.data);
    const isBroken = count === framesBeforeMiddle;
    yield isBroken ? { ...frame, data: `${text.slice(0, text.length / 2)}\n\n` } : frame;
  }
}

function* endInError(frames: Iterable<Frame>): Iterable<Frame> {
  let count = 0;
  for (const frame of frames) {
    if (count === framesBeforeMiddle) break;
    count += 1;
    yield frame;
  }
  yield { data: `data: ${errorText(serverError(500).body)}\n\n`, tokens: 0 };
}

function* endLinesInCrlf(frames: Iterable<Frame>): Iterable<Frame> {
  for (const frame of frames) {
    yield { ...frame, data: String(frame.data).replaceAll("\n", "\r\n") };
  }
}

function* addComments(frames: Iterable<Frame>): Iterable<Frame> {
  for (const frame of frames) {
    yield { data: ": still here\n\n", tokens: 0 };
    yield frame;
  }
}
