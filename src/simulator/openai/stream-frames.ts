import type { Fault, FaultMode } from "../faults/fault-mode.ts";
import { inflatedUsage } from "../faults/inflated-usage.ts";
import { framesBeforeMiddle, type Frame } from "../frame.ts";
import { isRecord, listOf, recordOf, type JsonRecord } from "../read-json.ts";
import type { Chunk } from "./chunks.ts";
import { serverError } from "./refusal-faults.ts";
import { errorText } from "./wire-error.ts";

/** Chunks as server-sent events, with the fault applied. */
export function streamFrames(chunks: Iterable<Chunk>, { mode }: Fault): Iterable<Frame> {
  const replace = chunkFaults[mode];
  const sent = replace === undefined ? chunks : Iterator.from(chunks).flatMap(replace);
  const frames = plainFrames(sent, mode);
  return frameFaults[mode]?.(frames) ?? frames;
}

/** Returns what the caller gets in place of a chunk. */
type ChunkFault = (chunk: Chunk) => readonly Chunk[];

const chunkFaults: Readonly<Partial<Record<FaultMode, ChunkFault>>> = {
  "ok-no-usage": (chunk) => (chunk.kind === "usage" ? [] : [chunk]),
  "missing-finish-reason": (chunk) => (chunk.kind === "finish" ? [] : [chunk]),
  "usage-twice": (chunk) => (chunk.kind === "usage" ? [chunk, chunk] : [chunk]),
  "wrong-usage": (chunk) => [withWrongUsage(chunk)],
  "role-every-chunk": (chunk) => [withRole(chunk)],
};

type Frames = Generator<Frame, void, void>;

const frameFaults: Readonly<Partial<Record<FaultMode, (frames: Frames) => Iterable<Frame>>>> = {
  "bad-json": (frames) =>
    frames.map((frame, index) => {
      const text = String(frame.data);
      const isBroken = index === framesBeforeMiddle - 1;
      return isBroken ? { ...frame, data: `${text.slice(0, text.length / 2)}\n\n` } : frame;
    }),
  "error-event-mid-stream": endInError,
  "crlf-framing": (frames) =>
    frames.map((frame) => ({ ...frame, data: String(frame.data).replaceAll("\n", "\r\n") })),
  comments: (frames) => frames.flatMap((frame) => [{ data: ": still here\n\n", tokens: 0 }, frame]),
};

function* plainFrames(chunks: Iterable<Chunk>, mode: FaultMode): Frames {
  for (const { kind, body, tokens } of chunks) {
    yield { data: `data: ${JSON.stringify(body)}\n\n`, tokens, hasUsage: kind === "usage" };
  }
  if (mode !== "no-done") yield { data: "data: [DONE]\n\n", tokens: 0 };
}

function withWrongUsage(chunk: Chunk): Chunk {
  const usage = chunk.body["usage"];
  if (!isRecord(usage)) return chunk;
  return { ...chunk, body: { ...chunk.body, usage: inflatedUsage(usage) } };
}

function withRole(chunk: Chunk): Chunk {
  const choices = listOf(chunk.body["choices"]).map((choice): JsonRecord => {
    const { delta, ...rest } = recordOf(choice);
    return { ...rest, delta: { role: "assistant", ...recordOf(delta) } };
  });
  return { ...chunk, body: { ...chunk.body, choices } };
}

function* endInError(frames: Frames): Iterable<Frame> {
  yield* frames.take(framesBeforeMiddle);
  yield { data: `data: ${errorText(serverError(500).body)}\n\n`, tokens: 0 };
}
