import type { ChatEvent, ChatRequest, ChatResult } from "../domain/chat/chat.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../domain/chat/embedding.ts";
import type { Caller } from "../domain/keys/key.ts";
import type { Model, Target } from "../domain/model.ts";
import type { UsageRecord } from "../domain/usage/usage.ts";
import type { UpstreamRequest } from "../upstreams/adapter.ts";

/**
 * A feature that follows calls, such as a guardrail, a budget, a cache or an audit of content. All
 * hooks of a configuration run in their order, at each of the four points.
 */
export interface CallHook {
  readonly name: string;
  /** Once a call, before its first point. Undefined: this call is not the hook's concern. */
  begin(call: HookedCall): HookPoints | undefined;
}

/** What a hook may know of a call. */
export interface HookedCall {
  /** Request id, as the caller and the ledger know it. */
  readonly id: string;
  readonly caller: Caller;
  /** Name of the environment. */
  readonly environment: string;
  /** Headers of the caller's request. */
  readonly headers: Pick<Headers, "get">;
}

/**
 * The four points, for one call. A `GatewayError` thrown at one of the first three is the call's
 * answer, or its error frame; anything else thrown there is an internal error.
 */
export interface HookPoints {
  /**
   * 1. The request was read and checked, and nothing is reserved yet. Returns the request that the
   * call goes on with; its size is estimated anew when it is another.
   */
  requestRead?(asked: AskedRequest): AskedRequest | Promise<AskedRequest>;
  /**
   * 2. A request is about to go to an upstream, once for each attempt, batch and count. Comes before
   * `authorize`, which signs what is returned here.
   */
  beforeSend?(
    request: UpstreamRequest,
    destination: HookedDestination,
  ): UpstreamRequest | Promise<UpstreamRequest>;
  /**
   * 3. A part of the answer is about to go to the caller; the upstream's counts of it are already in
   * the account. Returns what the caller gets.
   */
  answering?(part: AnswerPart): AnswerPart | Promise<AnswerPart>;
  /** 4. The call is over and in the ledger. What is thrown here is logged and changes nothing. */
  callClosed?(record: UsageRecord): void;
}

export interface HookedDestination {
  readonly model: Model;
  readonly target: Target;
}

export type AskedRequest =
  | { readonly kind: "chat"; readonly request: ChatRequest }
  | { readonly kind: "embedding"; readonly request: EmbeddingRequest };

/** Events of a streamed answer, as they come, or a whole answer. */
export type AnswerPart =
  | { readonly kind: "events"; readonly events: readonly ChatEvent[] }
  | { readonly kind: "chat"; readonly answer: ChatResult }
  | { readonly kind: "embedding"; readonly answer: EmbeddingResult };

/** The hooks that follow one call. */
export interface RunningHooks {
  requestRead(asked: AskedRequest): Promise<AskedRequest>;
  beforeSend(request: UpstreamRequest, destination: HookedDestination): Promise<UpstreamRequest>;
  answering(part: AnswerPart): Promise<AnswerPart>;
  callClosed(record: UsageRecord): void;
}
