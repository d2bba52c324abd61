/** One step of an answer, independent of the wire format. `tokens` is its number of tokens. */
export type AnswerEvent =
  | { readonly kind: "reasoning"; readonly piece: string; readonly tokens: number }
  | { readonly kind: "text"; readonly piece: string; readonly tokens: number }
  | { readonly kind: "refusal"; readonly piece: string; readonly tokens: number }
  | {
      /** A tool call begins. */
      readonly kind: "call";
      readonly index: number;
      /** The number of calls in the answer. */
      readonly count: number;
      readonly id: string;
      readonly name: string;
      readonly tool: "function" | "text";
      readonly tokens: number;
    }
  | {
      /** More of the input of the call with this index. */
      readonly kind: "input";
      readonly index: number;
      readonly tool: "function" | "text";
      readonly piece: string;
      readonly tokens: number;
    }
  | {
      /** Always the last event. */
      readonly kind: "finish";
      readonly reason: FinishReason;
      /** The stop sequence that ended the answer, if one did. */
      readonly stopSequence?: string | undefined;
      readonly completionTokens: number;
      readonly reasoningTokens: number;
    };

export type FinishReason = "stop" | "length" | "tool-calls";

/** All events except the last; only these have tokens. */
export type ContentEvent = Exclude<AnswerEvent, { kind: "finish" }>;
