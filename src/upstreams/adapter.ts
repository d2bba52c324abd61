import type { AdjustedFields, ChatEvent, ChatResult } from "../domain/chat/answer.ts";
import type { Conversation } from "../domain/chat/conversation.ts";
import type { Clock } from "../domain/clock.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../domain/chat/embedding.ts";
import type { ScannedVectors } from "../domain/chat/vector-scan.ts";
import type { TraceHeader } from "../domain/request-trace.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";
import type { UpstreamFailure, UpstreamFailureDetails } from "../domain/errors/upstream-failure.ts";

/** A request to an upstream; `authorize` adds the rest. */
export interface UpstreamRequest {
  readonly url: string;
  readonly method: "POST" | "GET";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** Headers of an answer. */
export interface AnswerHeaders {
  /** The value, joined by commas if there are several; null without one. `name`: lower case. */
  get(name: string): string | null;
}

/** A whole 2xx answer. Some providers send a part of it, such as token counts, in headers. */
export interface WholeAnswer {
  readonly headers: AnswerHeaders;
  readonly body: Uint8Array;
}

/**
 * A request together with the way to read its answer. It may be sent several times; each time has
 * an answer of its own.
 */
export interface EncodedRequest<Result> {
  readonly request: UpstreamRequest;
  /** Undefined: the upstream gets every field as the caller wrote it. */
  readonly adjusted?: AdjustedFields | undefined;
  /** Throws `UpstreamFailure` for anything that is not an answer. */
  decode(answer: WholeAnswer): Result;
  /** The usage that a body tells although it cannot be decoded, or is too large to be parsed. */
  readonly usageIn?: (body: Uint8Array) => TokenUsage | undefined;
}

export interface EncodedStreamRequest<Event> {
  readonly request: UpstreamRequest;
  /** As for `EncodedRequest`. */
  readonly adjusted?: AdjustedFields | undefined;
  /** The upstream sends nothing before the model has written the whole answer. */
  readonly isAnsweredWhole?: boolean;
  /** Tags what the caller is to bring back; not of adapters. */
  readonly tagEvents?: (events: readonly Event[]) => readonly Event[];
  /** A decoder reads one answer. */
  newDecoder(limits: DecoderLimits): StreamDecoder<Event>;
}

export interface DecoderLimits {
  /**
   * How many malformed events are skipped. None is skipped before the first event of the answer,
   * inside a tool call, or when it contains an error.
   */
  readonly malformedEvents: number;
  /** Limits on a whole answer that comes in place of a stream. */
  readonly answerLimitBytes: number;
  /** As counted by `domain/chat/json-scan`. */
  readonly answerValues: number;
}

/** Turns the bytes of a streamed answer into events, however they are split. Does not throw. */
export interface StreamDecoder<Event> {
  /** Set once the answer cannot continue; events that came before it are still returned. */
  readonly failure: UpstreamFailure | undefined;
  /** True once the answer is complete, even if the connection stays open. */
  readonly isDone: boolean;
  /** Set with `isDone` if the upstream still writes although the answer is complete: disconnect. */
  readonly endedEarly?: boolean;
  /** Malformed events so far, including one that ended the answer. */
  readonly malformedEvents: number;
  push(bytes: Uint8Array): readonly Event[];
  /** Call at the end of the body: an answer that was cut short fails here. */
  end(): readonly Event[];
}

/** A target by its names: the alias, the upstream's own identifier, and the upstream's name. */
export interface NamedTarget {
  readonly alias: string;
  readonly model: string;
  readonly upstream: string;
}

/** Where an opaque value of an answer, such as the signature of a thought, is valid. */
export interface ValueOrigin {
  /** The provider's API. */
  readonly wire: string;
  readonly model: string;
  /** The account or resource at the provider, as far as the configuration tells. No secret. */
  readonly account: string;
  /** The value also proves the text of its thought, which must return unchanged. */
  readonly provesText?: boolean;
}

/**
 * Translates calls of chat. Pure: it never sends, retries or decides. Throws `UpstreamFailure`
 * `unsupported` or `invalid-request` for requests that its upstream does not support.
 */
export interface ChatCodec {
  /** `model` is the upstream's own identifier of the target; the request has the target's alias. */
  encode(request: Conversation, model: string): EncodedRequest<ChatResult>;
  encodeStream(request: Conversation, model: string): EncodedStreamRequest<ChatEvent>;
  /** Counts the input tokens; undefined for models that cannot count without answering. */
  readonly countTokens?: (
    request: Conversation,
    model: string,
  ) => EncodedRequest<number> | undefined;
  /**
   * Where opaque values of answers are valid: `reasoning` blocks and their events, and tool calls
   * with other fields. Adapters write and read them as their provider does. Undefined: at this model
   * of this upstream alone.
   */
  readonly origin?: (target: NamedTarget) => ValueOrigin;
  /** Whether a session of the gateway's is sent as `promptCacheKey` where the caller named no cache. */
  readonly takesSessions?: boolean;
  /** False when each choice of an answer needs its own request. */
  readonly takesChoiceCount: boolean;
  /** False when images must be inside the request: the gateway then fetches them. */
  readonly takesImageUrls: boolean;
}

/** A whole 2xx answer, without its vectors, and these. */
export interface VectorAnswer extends ScannedVectors {
  readonly headers: AnswerHeaders;
}

/** As `EncodedRequest`. */
export interface EncodedEmbeddingRequest extends Pick<
  EncodedRequest<unknown>,
  "request" | "adjusted"
> {
  /** Throws `UpstreamFailure` for anything that is not an answer. */
  decode(answer: VectorAnswer): EmbeddingResult;
  /**
   * The same without what nobody but the gateway asked for, if the upstream refused just that. Sent
   * at once: a refusal costs nothing.
   */
  plainer?(refusal: UpstreamFailureDetails): EncodedEmbeddingRequest | undefined;
}

export interface EmbeddingCodec {
  /** As for `ChatCodec`. */
  encode(request: EmbeddingRequest, model: string): EncodedEmbeddingRequest;
  /** Most inputs one upstream request may carry; at least 1. `model` is as in `encode`. */
  batchLimit(request: EmbeddingRequest, model: string): number;
  /** False when token ids must become text first. */
  readonly takesTokenIds: boolean;
  /** Whether data URLs of images are read as images. `alias` and `model` are as in `encode`. */
  takesImages(alias: string, model: string): boolean;
}

export interface AdapterServices {
  readonly clock: Clock;
  /** For servers that omit the ids of tool calls. Ids must not repeat within a conversation. */
  readonly newToolCallId: () => string;
  /** Called with a failure outside any call, in words for the operator. */
  readonly onTrouble: (what: string) => void;
}

/** An answer outside 2xx; its body may be cut. */
export interface FailedAnswer extends WholeAnswer {
  readonly status: number;
}

/** A question of doctor, whose answer shows whether a server needs a setting. */
export interface ServerProbe {
  readonly kind: "chat" | "embedding";
  readonly request: UpstreamRequest;
  /** The setting as in the file, and what the server does that needs it. */
  readonly set: string;
  readonly about: string;
  /** Of an answer's body, or the message of a refusal. */
  readonly isNeeded: (answer: { readonly body?: Uint8Array; readonly refusal?: string }) => boolean;
  /** Its need explains all refusals: the others are asked once it is set. */
  readonly isFirst: boolean;
}

/** What a kind of upstream implements. The pipeline does everything else. */
export interface UpstreamAdapter {
  readonly chat?: ChatCodec;
  readonly embeddings?: EmbeddingCodec;
  /** What doctor can find out about the server by asking this model, and the settings do not say. */
  probes?(alias: string, model: string): readonly ServerProbe[];
  /**
   * Runs last, so that signing schemes see the final bytes. `ending.signal` aborts with the
   * attempt; it is created when it is first read.
   */
  authorize(
    request: UpstreamRequest,
    ending: { readonly signal: AbortSignal },
  ): Promise<UpstreamRequest> | UpstreamRequest;
  /** Name of the provider, or of its protocol, in the conventions of OpenTelemetry. */
  readonly provider?: string;
  /** Headers of the caller's trace that requests get. Undefined: none. */
  readonly traceHeaders?: readonly TraceHeader[];
  /**
   * Why requests cannot be authorized at the moment; undefined if they can, or if that is not known
   * yet. Absent if the credential is in the configuration.
   */
  readonly whyNoCredential?: () => string | undefined;
  /** The header of every answer that contains the provider's id of the request. */
  readonly requestIdHeader: string;
  /** Classifies a non-2xx answer to `request`. The pipeline decides what to do about it. */
  readFailure(answer: FailedAnswer, request: UpstreamRequest): UpstreamFailureDetails;
}
