/** One step of an answer being written, before any wire format. `tokens` is what it costs. */
export type AnswerEvent =
  | { readonly kind: "reasoning"; readonly piece: string; readonly tokens: number }
  | { readonly kind: "text"; readonly piece: string; readonly tokens: number }
  | { readonly kind: "refusal"; readonly piece: string; readonly tokens: number }
  | {
      /** A tool call begins. */
      readonly kind: "call";
      readonly index: number;
      /** How many calls the answer plans in all. */
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
      /** Always the last event, and always there. */
      readonly kind: "finish";
      readonly reason: FinishReason;
      /** The stop sequence that ended the answer, when one did. */
      readonly stopSequence?: string | undefined;
      readonly completionTokens: number;
      readonly reasoningTokens: number;
    };

export type FinishReason = "stop" | "length" | "tool-calls";

/** Everything but the end: what costs tokens. */
export type ContentEvent = Exclude<AnswerEvent, { kind: "finish" }>;
