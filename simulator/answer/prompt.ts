import type { JsonRecord } from "../json.ts";

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

const tokensPerMessage = 3;
const tokensPerReply = 3;
const tokensPerTool = 7;
const tokensPerAttachment = 85;

/** Counts the tokens of the conversation, its tools and its output schema. */
export function countPromptTokens(prompt: Prompt): number {
  let total = tokensPerReply;
  for (const turn of prompt.turns) total += countTurn(turn);
  for (const tool of prompt.tools) total += countTool(tool);
  if (prompt.output.kind === "schema") total += countTokens(JSON.stringify(prompt.output.schema));
  return total;
}

export function countTurn(turn: Turn): number {
  let total = tokensPerMessage + 1 + countTokens(turn.text);
  if (turn.name !== undefined) total += 1 + countTokens(turn.name);
  for (const call of turn.toolCalls) total += 3 + countTokens(call.name) + countTokens(call.input);
  for (const attachment of turn.attachments) {
    // Larger attachments have more tokens.
    total += tokensPerAttachment + Math.ceil((attachment.sizeBytes ?? 0) / 1024);
  }
  return total;
}

function countTool(tool: Tool): number {
  const own = tokensPerTool + countTokens(tool.name) + countTokens(tool.description);
  return tool.kind === "function" ? own + countTokens(JSON.stringify(tool.schema)) : own;
}

/**
 * The simulator's own tokens: up to five letters or three digits with the space before them, one
 * punctuation mark, or a run of white space. Joined, the tokens of a text are the text.
 */
const tokenPattern = / ?[\p{L}\p{M}]{1,5}| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]|\s{1,8}/gu;

export function* tokenize(text: string): Generator<string, void, undefined> {
  for (const [token] of text.matchAll(tokenPattern)) yield token;
}

export function countTokens(text: string): number {
  return text.match(tokenPattern)?.length ?? 0;
}

/** A model called `anything-ctx4096` has a context window of 4096 tokens. */
export function contextWindowIn(model: string): number | undefined {
  const size = /-ctx(\d+)$/.exec(model)?.[1];
  return size === undefined ? undefined : Number(size);
}

/** Whether a test model reasons by default. */
export function reasonsByDefault(model: string): boolean {
  return /(?<!finish-)reason/.test(model);
}
