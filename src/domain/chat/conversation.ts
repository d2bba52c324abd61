/** Fields that the form inside has no names for, as a caller or an upstream wrote them. */
export type ExtraFields = Readonly<Record<string, unknown>>;

/**
 * Request fields that were changed for the upstream: by name, `dropped` or the value sent instead,
 * which is a number or one word. A header tells the caller, so no name or word may come from the
 * request.
 */
export type AdjustedFields = ReadonlyMap<string, string | number>;

/** The wire formats that a conversation is read from and written to. Each has a folder in `wires`. */
export type Wire = "chat" | "responses" | "messages";

/**
 * What a caller asks of a chat model, in no vendor's shape: turns of ordered blocks, tools and
 * options. A dialect reads it from its wire, and a kind of upstream writes it to its own. Fields that
 * have no name here stay in `extra` as the caller wrote them; only the same wire may send them on.
 */
export interface Conversation {
  /** Whose fields are in `extra`, and whose paths are in `at`. */
  readonly wire: Wire;
  /** The alias. */
  readonly model: string;
  readonly isStreamed: boolean;
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  /** Undefined: the model decides. */
  readonly toolChoice?: ToolChoice | undefined;
  readonly format?: AnswerFormat | undefined;
  /** The caller's caps of the answer. Chat has two fields for it. */
  readonly caps: readonly OutputCap[];
  /** The plan's cap, for a caller that set none: an upstream may lower it. */
  readonly ownCap?: number | undefined;
  readonly options: Options;
  /** Undefined: the caller did not say whether the model shall think. */
  readonly thinking?: Thinking | undefined;
  readonly extra: ExtraFields;
  /** The caller's `anthropic-beta`, which only its own wire may send on. */
  readonly betas?: readonly string[] | undefined;
  /** What reading the body dropped, as the caller is told. Undefined: nothing. */
  readonly adjusted?: AdjustedFields | undefined;
}

/** A cap in tokens, and the caller's field. */
export interface OutputCap {
  readonly field: string;
  readonly tokens: number;
  /**
   * The wire demands a cap, so a large one says "no cap": it is lowered to the model's longest answer
   * instead of refused, and reserves as no cap does from half of that answer.
   */
  readonly isDemanded?: true | undefined;
}

/** Options of generation; undefined: not set. Null is never there. */
export interface Options {
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly stop?: readonly string[] | undefined;
  /** Number of choices. */
  readonly n?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly logitBias?: Readonly<Record<string, number>> | undefined;
  readonly logprobs?: boolean | undefined;
  readonly topLogprobs?: number | undefined;
  /** A number, or `JSON.rawJSON` for an integer beyond exact numbers. */
  readonly seed?: unknown;
  readonly parallelToolCalls?: boolean | undefined;
  readonly verbosity?: string | undefined;
  readonly serviceTier?: string | undefined;
  /** The caller's name of its end user. */
  readonly user?: string | undefined;
  readonly safetyIdentifier?: string | undefined;
  readonly promptCacheKey?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

export interface Thinking {
  /** `none` to `max`, in OpenAI's words. */
  readonly effort?: string | undefined;
  /** Tokens, as Messages' `enabled` has them. */
  readonly budget?: number | undefined;
  /** Messages' own mode, if the caller set one. */
  readonly mode?: "enabled" | "disabled" | "adaptive" | undefined;
  /** How much of the thoughts the caller wants to read. */
  readonly display?: string | undefined;
  /** The same in the words of Responses: `auto`, `concise` or `detailed`. */
  readonly summary?: string | undefined;
}

export interface Turn {
  /** `developer` is OpenAI's newer name of `system`. Results of tools are the user's. */
  readonly role: "system" | "developer" | "user" | "assistant";
  readonly blocks: readonly Block[];
  /** The content was one text, not a list. */
  readonly isPlain?: true | undefined;
  /** The name of the participant, in chat. */
  readonly name?: string | undefined;
  readonly cacheMark?: CacheMark | undefined;
  readonly extra?: ExtraFields | undefined;
  /** Its path in the caller's body, for errors. */
  readonly at: string;
}

/** The end of a part of the prompt that a provider may cache. */
export interface CacheMark {
  /** Undefined: the provider's default. */
  readonly ttl?: "5m" | "1h" | undefined;
  /** Anthropic's `cache_control`, or OpenAI's `prompt_cache_breakpoint`. */
  readonly form: "control" | "breakpoint";
  /** A tool's mark that stood within the object of its definition. */
  readonly isInner?: true | undefined;
  readonly extra?: ExtraFields | undefined;
}

interface BlockBase {
  readonly cacheMark?: CacheMark | undefined;
  /** Fields beside the block's type. */
  readonly extra?: ExtraFields | undefined;
  /** Fields within its own object, such as `image_url` or `function`. */
  readonly inner?: ExtraFields | undefined;
  /** As of a turn. */
  readonly at: string;
}

export interface TextBlock extends BlockBase {
  readonly type: "text";
  readonly text: string;
}

export interface RefusalBlock extends BlockBase {
  readonly type: "refusal";
  readonly text: string;
  /** It stood in a field of its own, beside the content, as chat's answers have it. */
  readonly isBeside?: true | undefined;
}

export interface ImageBlock extends BlockBase {
  readonly type: "image";
  /** A data URL, or an http(s) address. */
  readonly url: string;
  readonly detail?: string | undefined;
}

export interface DocumentBlock extends BlockBase {
  readonly type: "document";
  /** A data URL or plain base64. */
  readonly data?: string | undefined;
  /** Plain text in place of data. */
  readonly text?: string | undefined;
  /** The address of a file that the upstream would fetch. */
  readonly url?: string | undefined;
  readonly filename?: string | undefined;
  /** What the model is told beside the document. */
  readonly context?: string | undefined;
}

export interface AudioBlock extends BlockBase {
  readonly type: "audio";
  /** Base64. */
  readonly data: string;
  readonly format: string;
}

/** An earlier spoken answer, by its provider's id. */
export interface SpokenBlock extends BlockBase {
  readonly type: "spoken";
  readonly id: string;
}

export interface ReasoningBlock extends BlockBase {
  readonly type: "reasoning";
  /** What the caller may read; may be empty. */
  readonly text: string;
  /** Signature or ciphertext, which only its origin understands. Undefined: none. */
  readonly opaque?: string | undefined;
  /** The opaque value is all there is: the provider redacted the thought. */
  readonly isRedacted?: true | undefined;
}

export interface ToolCallBlock extends BlockBase {
  readonly type: "tool-call";
  /** Undefined: a call of the deprecated `functions`. */
  readonly id: string | undefined;
  readonly kind: ToolKind;
  readonly name: string;
  /** Group of a Responses tool. */
  readonly namespace?: string | undefined;
  /** JSON text of a function's arguments, or the text input of a custom tool. */
  readonly arguments: string;
  /**
   * Whether the upstream that is asked wrote the call with its fields. Undefined, also in what
   * dialects read: it is not known.
   */
  readonly author?: "this" | "another" | undefined;
}

export interface ToolResultBlock extends BlockBase {
  readonly type: "tool-result";
  /** The id of its call. Undefined: a result of the deprecated `functions`. */
  readonly callId: string | undefined;
  /** The function's name, where the id is undefined. */
  readonly name?: string | undefined;
  readonly content: readonly ResultContent[];
  readonly isPlain?: true | undefined;
  readonly isError?: true | undefined;
}

/** A block that only its own wire understands, such as one of a server's own tool. */
export interface ForeignBlock extends BlockBase {
  readonly type: "foreign";
  readonly value: ExtraFields;
  /** What it tells the model, for a wire that does not know the block. Undefined: nothing. */
  readonly text?: string | undefined;
}

export type ResultContent = TextBlock | ImageBlock | DocumentBlock | ForeignBlock;

export type Block =
  | TextBlock
  | RefusalBlock
  | ImageBlock
  | DocumentBlock
  | AudioBlock
  | SpokenBlock
  | ReasoningBlock
  | ToolCallBlock
  | ToolResultBlock
  | ForeignBlock;

/** A function takes JSON, a custom tool takes text. */
export type ToolKind = "function" | "custom";

export interface Tool {
  readonly kind: ToolKind;
  readonly name: string;
  /** Group of a Responses tool. */
  readonly namespace?: string | undefined;
  readonly namespaceDescription?: string | undefined;
  readonly description?: string | undefined;
  /** JSON schema of a function's arguments, of an object. */
  readonly parameters?: Readonly<Record<string, unknown>> | undefined;
  readonly strict?: boolean | undefined;
  /** What the text of a custom tool must match. Undefined: any text, or a format in `inner`. */
  readonly grammar?: { readonly syntax: string; readonly definition: string } | undefined;
  /** From the deprecated `functions`. */
  readonly isOld?: true | undefined;
  readonly cacheMark?: CacheMark | undefined;
  readonly extra?: ExtraFields | undefined;
  readonly inner?: ExtraFields | undefined;
  readonly at: string;
}

export type ToolChoice =
  | { readonly mode: "auto" | "none" | "required" }
  | { readonly mode: "named"; readonly kind: ToolKind; readonly name: string }
  | {
      readonly mode: "allowed";
      readonly isRequired: boolean;
      readonly tools: readonly { readonly kind: ToolKind; readonly name: string }[];
    };

export type AnswerFormat =
  | { readonly type: "text" | "json"; readonly extra?: ExtraFields | undefined }
  | {
      readonly type: "schema";
      /** Undefined: Messages has none. */
      readonly name?: string | undefined;
      readonly description?: string | undefined;
      readonly schema?: Readonly<Record<string, unknown>> | undefined;
      readonly strict?: boolean | undefined;
      readonly extra?: ExtraFields | undefined;
      /** Fields beside the schema's name. */
      readonly inner?: ExtraFields | undefined;
    };

/**
 * The name of a tool for wires without groups. Answers have it too; the dialect that knows groups
 * finds the tool by it.
 */
export function flatNameOf({ name, namespace }: Pick<Tool, "name" | "namespace">): string {
  return namespace === undefined || namespace === "functions" ? name : `${namespace}__${name}`;
}

/** Whether a block may stand in the result of a tool. */
export function isResultContent(block: Block): block is ResultContent {
  const { type } = block;
  return type === "text" || type === "image" || type === "document" || type === "foreign";
}

/** The larger of the caller's caps: a reservation for the smaller one could be exceeded. */
export function outputCap({ caps }: Conversation): number | undefined {
  return caps.length === 0 ? undefined : Math.max(...caps.map(({ tokens }) => tokens));
}

/** Number of choices that the caller wants. */
export function choiceCount({ options }: Conversation): number {
  return options.n ?? 1;
}

/** The caller's names of what is set in several places; `messages` also of all turns together. */
const names = {
  turns: ["messages", "input", "messages"],
  tools: ["tools", "tools", "tools"],
  toolChoice: ["tool_choice", "tool_choice", "tool_choice"],
  format: ["response_format", "text.format", "output_config.format"],
  /** Of an image, within its block. */
  imageUrl: ["image_url.url", "image_url", "source.url"],
  cap: ["max_completion_tokens", "max_output_tokens", "max_tokens"],
  effort: ["reasoning_effort", "reasoning.effort", "output_config.effort"],
  temperature: ["temperature", "temperature", "temperature"],
  topP: ["top_p", "top_p", "top_p"],
  topK: ["top_k", "top_k", "top_k"],
  stop: ["stop", "stop", "stop_sequences"],
  n: ["n", "n", "n"],
  presencePenalty: ["presence_penalty", "presence_penalty", "presence_penalty"],
  frequencyPenalty: ["frequency_penalty", "frequency_penalty", "frequency_penalty"],
  logitBias: ["logit_bias", "logit_bias", "logit_bias"],
  logprobs: ["logprobs", "top_logprobs", "logprobs"],
  topLogprobs: ["top_logprobs", "top_logprobs", "top_logprobs"],
  parallelToolCalls: [
    "parallel_tool_calls",
    "parallel_tool_calls",
    "tool_choice.disable_parallel_tool_use",
  ],
} as const satisfies Readonly<Record<string, readonly [string, string, string]>>;

const wires = ["chat", "responses", "messages"] as const satisfies readonly Wire[];

/** What the caller calls an option, for errors and `x-sluice-adjusted-parameters`. */
export function fieldOf({ wire }: Conversation, option: keyof typeof names): string {
  return names[option][wires.indexOf(wire)] ?? option;
}
