import type { TokenUsage } from "../usage/usage.ts";

/**
 * The canonical chat form: OpenAI's wire shape and field names, validated by
 * `dialects/openai-chat/schema`. Unknown fields stay on the objects; an adapter sends only fields
 * that it knows or its operator named.
 */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly stream?: boolean | null;
  readonly stream_options?: { readonly include_usage?: boolean | null } | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly n?: number | null;
  readonly stop?: string | readonly string[] | null;
  readonly presence_penalty?: number | null;
  readonly frequency_penalty?: number | null;
  readonly logit_bias?: Readonly<Record<string, number>> | null;
  readonly logprobs?: boolean | null;
  readonly top_logprobs?: number | null;
  /** A number, or `JSON.rawJSON` for an integer beyond exact numbers. */
  readonly seed?: unknown;
  readonly response_format?: ResponseFormat | null;
  readonly tools?: readonly ChatTool[] | null;
  readonly tool_choice?: ToolChoice | null;
  readonly parallel_tool_calls?: boolean | null;
  readonly functions?: readonly FunctionDefinition[] | null;
  readonly function_call?: "none" | "auto" | { readonly name: string } | null;
  readonly reasoning_effort?: string | null;
  readonly user?: string | null;
  /** Set if the gateway chose the cap: an upstream may then lower it. */
  readonly [isOwnCap]?: true;
  readonly [field: string]: unknown;
}

/** A symbol, so that no body can contain it. */
export const isOwnCap = Symbol("isOwnCap");

export interface FunctionDefinition {
  readonly name: string;
  readonly description?: string | null;
  readonly parameters?: Readonly<Record<string, unknown>> | null;
  readonly strict?: boolean | null;
}

export type ChatTool =
  | { readonly type: "function"; readonly function: FunctionDefinition }
  | { readonly type: "custom"; readonly custom: { readonly name: string } };

type ToolChoice =
  | "none"
  | "auto"
  | "required"
  | { readonly type: "function"; readonly function: { readonly name: string } }
  | { readonly type: "custom"; readonly custom: { readonly name: string } }
  | { readonly type: "allowed_tools"; readonly allowed_tools: Readonly<Record<string, unknown>> };

type ResponseFormat =
  | { readonly type: "text" }
  | { readonly type: "json_object" }
  | {
      readonly type: "json_schema";
      readonly json_schema: {
        readonly name: string;
        readonly schema?: Readonly<Record<string, unknown>> | null;
        readonly strict?: boolean | null;
      };
    };

type ChatRole = "developer" | "system" | "user" | "assistant" | "tool" | "function";

export interface ChatMessage {
  readonly role: ChatRole;
  readonly content?: string | readonly ContentPart[] | null;
  readonly name?: string | null;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly RequestToolCall[] | null;
  readonly [field: string]: unknown;
}

export type ContentPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "refusal"; readonly refusal: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } }
  | { readonly type: "input_audio"; readonly input_audio: { readonly data: string } }
  | { readonly type: "file"; readonly file: Readonly<Record<string, unknown>> };

export type RequestToolCall =
  | {
      readonly id: string;
      readonly type: "function";
      readonly function: { readonly name: string; readonly arguments: string };
    }
  | {
      readonly id: string;
      readonly type: "custom";
      readonly custom: { readonly name: string; readonly input: string };
    };

const finishReasons = ["stop", "length", "tool_calls", "content_filter", "function_call"] as const;
export type FinishReason = (typeof finishReasons)[number];

export type ToolCallKind = "function" | "custom";

/** Fields of an answer that the internal form has no names for, as the upstream wrote them. */
export type ExtraFields = Readonly<Record<string, unknown>>;

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

export interface ResultToolCall {
  readonly id: string;
  readonly kind: ToolCallKind;
  readonly name: string;
  /** JSON text of a function's arguments, or the text input of a custom tool. */
  readonly arguments: string;
  readonly extra?: ToolCallExtra | undefined;
}

/** Entries of OpenAI's `logprobs.content` or `logprobs.refusal`, passed through. */
export type TokenLogprobs = readonly unknown[];

/** A block in the form its upstream expects back; `signature` and `data` are opaque to others. */
export type ReasoningBlock =
  | { readonly kind: "signed"; readonly text: string; readonly signature: string }
  /** Hidden from the caller too. */
  | { readonly kind: "redacted"; readonly data: string };

export interface ChatChoice {
  readonly index: number;
  readonly content: string | undefined;
  readonly refusal: string | undefined;
  readonly reasoning: string | undefined;
  /** Reasoning blocks the upstream expects back, in order; most upstreams have none. */
  readonly reasoningBlocks?: readonly ReasoningBlock[] | undefined;
  readonly toolCalls: readonly ResultToolCall[];
  /** Answer to the deprecated `functions` of a request. */
  readonly functionCall: { readonly name: string; readonly arguments: string } | undefined;
  readonly finishReason: FinishReason;
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
    }
  | {
      readonly type: "refusal-delta";
      readonly choice: number;
      readonly text: string;
      readonly logprobs?: TokenLogprobs;
    }
  | { readonly type: "reasoning-delta"; readonly choice: number; readonly text: string }
  /** Follows the deltas of its reasoning; `block` counts from 0 within the choice. */
  | {
      readonly type: "reasoning-block";
      readonly choice: number;
      readonly block: number;
      readonly content: ReasoningBlock;
    }
  | {
      readonly type: "tool-call-start";
      readonly choice: number;
      readonly call: number;
      readonly id: string;
      readonly kind: ToolCallKind;
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
    };

/**
 * Request fields that were changed for the upstream: by name, `dropped` or the value sent instead,
 * which is a number or one word. A header tells the caller, so no name or word may come from the
 * request.
 */
export type AdjustedFields = ReadonlyMap<string, string | number>;

export const nothingAdjusted: AdjustedFields = new Map();
