import type { TokenUsage } from "../usage/usage.ts";
import type { AdjustedFields, ExtraFields, ToolKind } from "./conversation.ts";

export type { AdjustedFields, ExtraFields };

/**
 * Why an answer ended: OpenAI's words and what the other wires tell beyond them. `stop_sequence`:
 * at one of the caller's; `window_full`: no more room in the context window; `refusal`: the model
 * declined; `pause`: it wants its own turn back to go on.
 */
export type FinishReason =
  | "stop"
  | "stop_sequence"
  | "length"
  | "window_full"
  | "tool_calls"
  | "function_call"
  | "content_filter"
  | "refusal"
  | "pause";

export interface ToolCallExtra {
  readonly call?: ExtraFields | undefined;
  /** Fields of its `function` or `custom`. */
  readonly body?: ExtraFields | undefined;
}

/** The counts of `prompt_tokens_details` and `completion_tokens_details` without other names. */
export interface TokenDetails {
  readonly input: Readonly<Record<string, number>>;
  readonly output: Readonly<Record<string, number>>;
}

/** A block of an answer, in the order in which the model wrote it. */
export type AnswerBlock = AnswerText | AnswerReasoning | AnswerToolCall;

export interface AnswerText {
  readonly type: "text" | "refusal";
  readonly text: string;
  /** The places in documents that the text rests on, as Messages has them. */
  readonly citations?: readonly ExtraFields[] | undefined;
}

/** A thought. `opaque` and `isRedacted` are as in a turn's block. */
export interface AnswerReasoning {
  readonly type: "reasoning";
  readonly text: string;
  readonly opaque?: string | undefined;
  readonly isRedacted?: true | undefined;
}

export interface AnswerToolCall {
  readonly type: "tool-call";
  /** Undefined: answers the deprecated `functions` of a request. */
  readonly id: string | undefined;
  readonly kind: ToolKind;
  readonly name: string;
  /** JSON text of a function's arguments, or the text input of a custom tool. */
  readonly arguments: string;
  readonly extra?: ToolCallExtra | undefined;
}

/** Entries of OpenAI's `logprobs.content` or `logprobs.refusal`, passed through. */
export type TokenLogprobs = readonly unknown[];

export interface ChatChoice {
  readonly index: number;
  readonly blocks: readonly AnswerBlock[];
  readonly finishReason: FinishReason;
  /** The caller's stop sequence at which the answer ended, if the upstream tells it. */
  readonly stopSequence?: string | undefined;
  /** Why the model declined, as Messages has it. */
  readonly stopDetails?: ExtraFields | undefined;
  readonly logprobs: TokenLogprobs | undefined;
  readonly refusalLogprobs?: TokenLogprobs | undefined;
  /** Undefined if no guardrail intervened. */
  readonly guardrail?: GuardrailOutcome | undefined;
  readonly extra?: ChoiceExtra | undefined;
}

/** Extra fields of a choice, and of its message or delta. */
interface ChoiceExtra {
  readonly choice?: ExtraFields | undefined;
  readonly message?: ExtraFields | undefined;
}

/** Extra fields of a chunk: of the choice, and beside the choices. */
export interface ChunkExtra extends ChoiceExtra {
  readonly answer?: ExtraFields | undefined;
  /** One of the block's text so far. */
  readonly citation?: ExtraFields | undefined;
}

/** What a guardrail of the provider did to a choice, without its findings, which may be secret. */
export interface GuardrailOutcome {
  /** Undefined if the provider does not say. */
  readonly action: "blocked" | "masked" | undefined;
}

/** A whole answer of a chat model. */
export interface ChatResult {
  readonly choices: readonly ChatChoice[];
  readonly usage: TokenUsage | undefined;
  readonly tokenDetails?: TokenDetails | undefined;
  readonly systemFingerprint: string | undefined;
  readonly serviceTier: string | undefined;
  readonly extra?: ExtraFields | undefined;
}

/** One event of a streamed answer; `choice` and `call` are indexes of a choice and its call. */
export type ChatEvent =
  | {
      readonly type: "text-delta";
      readonly choice: number;
      /** Empty if there are only other fields. */
      readonly text: string;
      readonly logprobs?: TokenLogprobs;
      readonly extra?: ChunkExtra;
      /** Another block of text begins, which stays apart from one before it. */
      readonly isStart?: true;
    }
  | {
      readonly type: "refusal-delta";
      readonly choice: number;
      readonly text: string;
      readonly logprobs?: TokenLogprobs;
    }
  | { readonly type: "reasoning-delta"; readonly choice: number; readonly text: string }
  /** Ends a thought that its upstream expects back, after its deltas, with the whole of it. */
  | {
      readonly type: "reasoning-block";
      readonly choice: number;
      readonly content: AnswerReasoning;
    }
  | {
      readonly type: "tool-call-start";
      readonly choice: number;
      readonly call: number;
      readonly id: string;
      readonly kind: ToolKind;
      readonly name: string;
      readonly extra?: ToolCallExtra;
    }
  | {
      readonly type: "tool-call-delta";
      readonly choice: number;
      readonly call: number;
      readonly arguments: string;
      readonly extra?: ToolCallExtra;
    }
  | { readonly type: "function-call-start"; readonly choice: number; readonly name: string }
  | { readonly type: "function-call-delta"; readonly choice: number; readonly arguments: string }
  | {
      readonly type: "choice-finish";
      readonly choice: number;
      readonly finishReason: FinishReason;
      /** These two as in a choice. */
      readonly stopSequence?: string | undefined;
      readonly stopDetails?: ExtraFields | undefined;
      readonly guardrail?: GuardrailOutcome | undefined;
      readonly extra?: ChunkExtra;
    }
  | {
      readonly type: "usage-report";
      readonly usage: TokenUsage;
      readonly details?: TokenDetails;
      /** Fields beside it that came after the end of all choices. */
      readonly extra?: ExtraFields;
      /** Covers only the choices of one of several requests. */
      readonly isPart?: true;
    }
  | {
      readonly type: "answer-start";
      readonly systemFingerprint: string | undefined;
      readonly serviceTier: string | undefined;
    }
  /** What some upstreams count before the answer begins: the input. The report at the end decides. */
  | { readonly type: "usage-start"; readonly usage: TokenUsage };

export const nothingAdjusted: AdjustedFields = new Map();
