import { join } from "node:path";
import { z } from "zod";
import { endChild } from "../stand/child.ts";
import type { Destination } from "../stand/stand.ts";
import { requestFor } from "./request-for.ts";
import { streamRequest } from "./requests.ts";
import type { StreamLoad } from "../plan.ts";

export interface StreamDrive {
  readonly destination: Destination;
  readonly load: StreamLoad;
  /** Default: the model of all groups. */
  readonly model?: string;
  readonly openWithinMs: number;
  readonly signal: AbortSignal;
}

const countsSchema = z.strictObject({
  begun: z.int(),
  whole: z.int(),
  events: z.int(),
  reads: z.int(),
  /** The 99th percentile of the time to a stream's first event. */
  firstP99Ms: z.number(),
});

export type StreamCounts = z.infer<typeof countsSchema>;

/** Streams that stay open until they end or this is disposed. */
export interface OpenStreams extends AsyncDisposable {
  /** Resolves when every stream has its first event. */
  readonly begun: Promise<StreamCounts>;
  readonly ended: Promise<StreamCounts>;
}

/** Runs streams to their end. Throws if one is cut. */
export async function driveStreams(drive: StreamDrive): Promise<StreamCounts> {
  await using streams = openStreams(drive);
  const [, counts] = await Promise.all([streams.begun, streams.ended]);
  const { streams: wanted, chunks } = drive.load;
  if (counts.whole !== wanted || counts.events < wanted * chunks) {
    throw new Error(`streams broke off: ${JSON.stringify(counts)}`);
  }
  return counts;
}

export function openStreams(drive: StreamDrive): OpenStreams {
  const { destination, load, openWithinMs, signal } = drive;
  const request = requestFor(destination, streamRequest(load, drive.model));
  const { port, headers } = destination;
  const argument = {
    destination: { port, headers },
    request,
    streams: load.streams,
    openWithinMs,
  };
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "stream-load.ts"), JSON.stringify(argument)],
    { stdin: "ignore", stdout: "pipe", stderr: "inherit", signal },
  );
  const lines = linesOf(child.stdout);
  const begun = readCounts(lines);
  const ended = begun.then(() => readCounts(lines));
  // A failure reaches the waits for it; there may be none.
  begun.catch(() => undefined);
  ended.catch(() => undefined);
  return { begun, ended, [Symbol.asyncDispose]: () => endChild(child) };
}

async function readCounts(lines: AsyncIterator<string>): Promise<StreamCounts> {
  const line = await lines.next();
  if (line.done === true) throw new Error("the stream load ended early");
  return countsSchema.parse(JSON.parse(line.value));
}

async function* linesOf(output: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of output) {
    const lines = `${text}${decoder.decode(piece, { stream: true })}`.split("\n");
    text = lines.pop() ?? "";
    yield* lines;
  }
}
