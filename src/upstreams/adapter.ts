import type { AdjustedFields } from "../domain/chat/adjusted-fields.ts";
import type { Clock } from "../domain/clock.ts";
import type { ChatEvent, ChatRequest, ChatResult } from "../domain/chat/chat.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../domain/chat/embedding.ts";
import type { UpstreamFailure, UpstreamFailureDetails } from "../domain/errors/upstream-failure.ts";

/** A request to an upstream, complete but for what `authorize` adds. */
export interface UpstreamRequest {
  readonly url: string;
  readonly method: "POST" | "GET";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer>;
}

/** A whole 2xx answer. Some providers tell a part of it, such as token counts, in headers. */
export interface WholeAnswer {
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/**
 * A request together with the way to read its answer, which may depend on what was asked. It may
 * be sent several times, each with an answer of its own.
 */
export interface Exchange<Result> {
  readonly request: UpstreamRequest;
  /** Undefined: the upstream gets all as the caller wrote it. */
  readonly adjusted?: AdjustedFields;
  /** Throws `UpstreamFailure` for anything that is not an answer. */
  decode(answer: WholeAnswer): Result;
}

export interface StreamExchange<Event> {
  readonly request: UpstreamRequest;
  /** As for `Exchange`. */
  readonly adjusted?: AdjustedFields;
  /** For one answer. */
  newDecoder(limits: DecoderLimits): StreamDecoder<Event>;
}

export interface DecoderLimits {
  /**
   * Events without sense that are skipped while the stream goes on. None is skipped before the
   * first event of the answer, inside a tool call, or when it tells an error.
   */
  readonly malformedEvents: number;
}

/**
 * Translates one kind of call. Pure: it never sends, never retries, never decides. Throws
 * `UpstreamFailure` `unsupported` or `invalid-request` for what its upstream cannot be asked.
 */
export interface Codec<Request, Result> {
  /** `model` is the upstream's own identifier of the target. */
  encode(request: Request, model: string): Exchange<Result>;
}

/** Turns the bytes of a streamed answer into events, whatever the split. Does not throw. */
export interface StreamDecoder<Event> {
  /** Set once the answer cannot go on; events that came before it are returned all the same. */
  readonly failure: UpstreamFailure | undefined;
  /** True once the answer is whole, even if the connection stays open. */
  readonly isDone: boolean;
  /** With `isDone`: the upstream still writes, for nobody, so its connection is closed. */
  readonly endedEarly?: boolean;
  /** Those so far, the one that ended the answer among them. */
  readonly malformedEvents: number;
  push(bytes: Uint8Array): readonly Event[];
  /** Call at the end of the body: an answer that was cut short fails here. */
  end(): readonly Event[];
}

export interface ChatCodec extends Codec<ChatRequest, ChatResult> {
  encodeStream(request: ChatRequest, model: string): StreamExchange<ChatEvent>;
  /** Asks for the number of input tokens; undefined for models that cannot say without answering. */
  readonly countTokens?: (request: ChatRequest, model: string) => Exchange<number> | undefined;
  /** False when each choice of an answer takes a request of its own. */
  readonly takesChoiceCount: boolean;
  /** False when images must come inside the request: addresses are then read by the gateway. */
  readonly takesImageUrls: boolean;
}

export interface EmbeddingCodec extends Codec<EmbeddingRequest, EmbeddingResult> {
  /** Most inputs one upstream request may carry; at least 1. `model` is as in `encode`. */
  batchLimit(request: EmbeddingRequest, model: string): number;
  /** False when token ids must become text first. */
  readonly takesTokenIds: boolean;
  /** Whether data URLs of images are read as images. `alias` and `model` are as in `encode`. */
  takesImages(alias: string, model: string): boolean;
}

/** What adapters need from outside. */
export interface AdapterServices {
  readonly clock: Clock;
  /** For servers that leave the ids of tool calls out. Ids must not repeat within a conversation. */
  readonly newToolCallId: () => string;
  /** Told what fails outside any call, in words for the operator. */
  readonly onTrouble: (what: string) => void;
}

/** An answer outside 2xx; its body may be cut. */
export interface FailedAnswer extends WholeAnswer {
  readonly status: number;
}

/** What a kind of upstream must bring. Everything else about a call is the pipeline's. */
export interface UpstreamAdapter {
  readonly chat?: ChatCodec;
  readonly embeddings?: EmbeddingCodec;
  /** Runs last, so that signing schemes see the final bytes. */
  authorize(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamRequest>;
  /** Header of every answer that holds the provider's id of the request. */
  readonly requestIdHeader: string;
  /** Says what a non-2xx answer to `request` means. The pipeline decides what to do about it. */
  readFailure(answer: FailedAnswer, request: UpstreamRequest): UpstreamFailureDetails;
}
