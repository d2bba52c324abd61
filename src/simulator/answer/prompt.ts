import type { JsonRecord } from "../read-json.ts";

/** A chat request, independent of the wire format. */
export interface Prompt {
  readonly model: string;
  /** The conversation so far, oldest first. */
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolUse: ToolUse;
  readonly output: OutputForm;
  /** Undefined when the caller set no limit. */
  readonly maxTokens: number | undefined;
  readonly stopSequences: readonly string[];
  /** Changes the answer; the same seed gives the same answer. */
  readonly seed: string;
  /** Undefined if the caller set none and the model does not reason by default. */
  readonly reasoningEffort: string | undefined;
}

export interface Turn {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly text: string;
  readonly name: string | undefined;
  readonly attachments: readonly Attachment[];
  readonly toolCalls: readonly { readonly name: string; readonly input: string }[];
}

export interface Attachment {
  readonly kind: "image" | "audio" | "file";
  /** For example `image/png`; undefined when only an address was given. */
  readonly mediaType: string | undefined;
  /** Undefined when only an address was given. */
  readonly sizeBytes: number | undefined;
  readonly name: string | undefined;
}

export type Tool =
  | {
      readonly kind: "function";
      readonly name: string;
      readonly description: string;
      readonly schema: JsonRecord;
    }
  | {
      readonly kind: "text";
      readonly name: string;
      readonly description: string;
      /** A regular expression that the input must match. */
      readonly pattern: string | undefined;
    };

export interface ToolUse {
  readonly mode: "none" | "auto" | "required";
  /** When set, only these tools may be called. */
  readonly only: readonly string[] | undefined;
  readonly isParallel: boolean;
}

export type OutputForm =
  | { readonly kind: "text" }
  | { readonly kind: "json" }
  | { readonly kind: "schema"; readonly schema: JsonRecord };

export function lastTurn(prompt: Prompt): Turn | undefined {
  return prompt.turns.at(-1);
}

/** The text of the last user message, even if tool results follow it. */
export function lastUserText(prompt: Prompt): string {
  return prompt.turns.findLast((turn) => turn.role === "user")?.text ?? "";
}
