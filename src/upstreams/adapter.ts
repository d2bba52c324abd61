import type { Clock } from "../domain/clock.ts";
import type { ChatEvent, ChatRequest, ChatResult } from "../domain/chat.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../domain/embedding.ts";
import type { UpstreamFailure, UpstreamFailureDetails } from "../domain/upstream-failure.ts";

/** A request to an upstream, complete but for what `authorize` adds. */
export interface UpstreamRequest {
  readonly url: string;
  readonly method: "POST" | "GET";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/** Translates one kind of call. Pure: it never sends, never retries, never decides. */
export interface Codec<Request, Result> {
  /** `model` is the upstream's own identifier of the target. */
  encode(request: Request, model: string): UpstreamRequest;
  /** Reads a whole 2xx answer. Throws `UpstreamFailure` for anything that is not one. */
  decode(body: Uint8Array): Result;
}

/** Turns the bytes of a streamed answer into events, whatever the split. Does not throw. */
export interface StreamDecoder<Event> {
  /** Set once the answer cannot go on; events that came before it are returned all the same. */
  readonly failure: UpstreamFailure | undefined;
  /** True once the answer is whole, even if the connection stays open. */
  readonly isDone: boolean;
  push(bytes: Uint8Array): readonly Event[];
  /** Call at the end of the body: an answer that was cut short fails here. */
  end(): readonly Event[];
}

export interface StreamingCodec<Request, Result, Event> extends Codec<Request, Result> {
  encodeStream(request: Request, model: string): UpstreamRequest;
  decodeStream(): StreamDecoder<Event>;
}

export interface EmbeddingCodec extends Codec<EmbeddingRequest, EmbeddingResult> {
  /** Most inputs one upstream request may carry. */
  readonly batchLimit: number;
  /** False when token ids must become text first. */
  readonly takesTokenIds: boolean;
}

/** What adapters need from outside. */
export interface AdapterServices {
  readonly clock: Clock;
  /** For servers that leave the ids of tool calls out. Ids must not repeat within a conversation. */
  readonly newToolCallId: () => string;
}

/** What a kind of upstream must bring. Everything else about a call is the pipeline's. */
export interface UpstreamAdapter {
  readonly chat?: StreamingCodec<ChatRequest, ChatResult, ChatEvent>;
  readonly embeddings?: EmbeddingCodec;
  /** Runs last, so that signing schemes see the final bytes. */
  authorize(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamRequest>;
  /** Says what a non-2xx answer means. The pipeline decides what to do about it. */
  readFailure(status: number, headers: Headers, body: Uint8Array): UpstreamFailureDetails;
}
