import type { ChatEvent, ChatResult } from "../domain/chat/answer.ts";
import type { Conversation } from "../domain/chat/conversation.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../domain/chat/embedding.ts";
import type { Caller } from "../domain/keys/key.ts";
import type { Model, Target } from "../domain/model.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";
import type { UpstreamRequest } from "../upstreams/adapter.ts";

/**
 * A feature that follows calls, such as a guardrail, a budget, a cache or a content audit. All
 * configured hooks run in order at each of the four points.
 */
export interface CallHook {
  readonly name: string;
  /** Called once per call, before its first point. Undefined: the hook skips this call. */
  begin(call: HookedCall): HookPoints | undefined;
}

/** What a hook sees of a call. */
export interface HookedCall {
  /** Request id, as in the response and the ledger. */
  readonly id: string;
  readonly caller: Caller;
  /** Name of the environment. */
  readonly environment: string;
  /** Headers of the caller's request. */
  readonly headers: Pick<Headers, "get">;
  /** Fires when the call ends early, as when its caller leaves: it no longer waits for the hook. */
  readonly signal: AbortSignal;
}

/**
 * The four points of one call. A `GatewayError` thrown at one of the first three becomes the answer
 * of the call, or its error frame; any other error becomes an internal error.
 */
export interface HookPoints {
  /**
   * 1. The request was parsed and checked; nothing is reserved yet. Returns the request to continue
   * with; if it changed, its size is estimated again.
   */
  requestRead?(asked: AskedRequest): AskedRequest | Promise<AskedRequest>;
  /**
   * 2. A request is about to be sent to an upstream, once per attempt, batch and count. Runs before
   * `authorize`, which signs the result.
   */
  beforeSend?(
    request: UpstreamRequest,
    destination: HookedDestination,
  ): UpstreamRequest | Promise<UpstreamRequest>;
  /**
   * 3. A part of the answer is about to be sent; the upstream's usage is already counted. Returns
   * what the caller gets.
   */
  answering?(part: AnswerPart): AnswerPart | Promise<AnswerPart>;
  /** 4. The call is over and in the ledger. An error is logged and has no effect. */
  callClosed?(record: UsageRecord): void;
}

export interface HookedDestination {
  readonly model: Model;
  readonly target: Target;
}

export type AskedRequest =
  | { readonly kind: "chat"; readonly request: Conversation }
  | { readonly kind: "embedding"; readonly request: EmbeddingRequest };

/** Events of a streamed answer, or a whole answer. */
export type AnswerPart =
  | { readonly kind: "events"; readonly events: readonly ChatEvent[] }
  | { readonly kind: "chat"; readonly answer: ChatResult }
  | { readonly kind: "embedding"; readonly answer: EmbeddingResult };

/** The hooks of one call. A result of a different kind than the input is ignored. */
export interface RunningHooks {
  requestRead<Asked extends AskedRequest>(asked: Asked): Promise<Asked>;
  beforeSend(request: UpstreamRequest, destination: HookedDestination): Promise<UpstreamRequest>;
  answering<Part extends AnswerPart>(part: Part): Promise<Part>;
  callClosed(record: UsageRecord): void;
}
