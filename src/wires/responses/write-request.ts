import { hash } from "node:crypto";
import {
  type AdjustedFields,
  type Block,
  type Conversation,
  type DocumentBlock,
  type ExtraFields,
  fieldOf,
  flatNameOf,
  type ReasoningBlock,
  type ResultContent,
  type Tool,
  type ToolCallBlock,
  type ToolKind,
  type ToolResultBlock,
  type Turn,
} from "../../domain/chat/conversation.ts";
import { unsupported } from "../../domain/errors/upstream-failure.ts";
import { asError, isLost } from "../chat/as-chat-turns.ts";
import { writeMark } from "../chat/cache-marks.ts";
import { effortOf } from "../openai-format.ts";
import { redactedMark } from "./output-items.ts";

/** How requests are written for one server. */
export interface ResponsesRules {
  /** Root fields without a name in a conversation that a caller of this wire may send on. */
  readonly forwarded: ReadonlySet<string>;
  /** Root fields that are never sent. */
  readonly dropFields: readonly string[];
  /** The server refuses items, groups of tools and fields of items that not all servers know. */
  readonly isStrict: boolean;
}

/** An object of the body; what is undefined in it is not sent. */
type Written = Record<string, unknown>;

/**
 * The body of `POST /v1/responses` for a conversation of any wire. Nothing is stored there, so the
 * thoughts come and go as ciphertexts, and no item has an id: servers refuse ids of others. `model`
 * is the server's name of it. Throws `UpstreamFailure` for what the wire cannot say.
 */
export function writeResponsesRequest(
  conversation: Conversation,
  model: string,
  rules: ResponsesRules,
): { readonly body: Written; readonly adjusted: AdjustedFields } {
  const { wire, turns, tools, isStreamed, options, extra, caps, ownCap } = conversation;
  const isOwn = wire === "responses";
  const writer = new ItemWriter(isOwn, isOwn && !rules.isStrict);
  const [first] = turns;
  const instructions = isOwn && first?.at === "instructions" ? first.blocks[0] : undefined;
  const cap = caps.length === 0 ? ownCap : Math.max(...caps.map(({ tokens }) => tokens));
  const effort = effortOf(conversation);
  const summary = summaryOf(conversation);
  const format = writeFormat(conversation);
  const { verbosity } = options;
  const hasText = format !== undefined || verbosity !== undefined;
  const body: Written = {
    model,
    instructions: instructions?.type === "text" ? instructions.text : undefined,
    input: writer.write(instructions === undefined ? turns : turns.slice(1)),
    stream: isStreamed ? true : undefined,
    store: false,
    include: included(conversation, model),
    max_output_tokens: cap === undefined ? undefined : Math.max(cap, leastCap),
    temperature: options.temperature,
    top_p: options.topP,
    top_logprobs: options.logprobs === true ? options.topLogprobs : undefined,
    service_tier: options.serviceTier,
    user: options.user,
    safety_identifier: options.safetyIdentifier,
    prompt_cache_key: options.promptCacheKey,
    metadata: options.metadata,
    reasoning: effort === undefined && summary === undefined ? undefined : { effort, summary },
    text: hasText ? { format, verbosity } : undefined,
  };
  if (tools.length > 0) {
    body["tools"] = writeTools(conversation, !rules.isStrict);
    body["tool_choice"] = writeChoice(conversation, !rules.isStrict);
  }
  // The deprecated `functions` have room for one call.
  const parallel = tools.some(isOld) ? false : options.parallelToolCalls;
  if (isOwn || tools.length > 0) body["parallel_tool_calls"] = parallel;
  if (isOwn) for (const field in extra) if (rules.forwarded.has(field)) body[field] = extra[field];
  for (const field of rules.dropFields) delete body[field];
  return { body, adjusted: adjustedIn(conversation, writer.hasLost) };
}

/** The API refuses less. */
const leastCap = 16;

function adjustedIn(conversation: Conversation, hasLost: boolean): AdjustedFields {
  const { options, thinking, caps } = conversation;
  const adjusted = new Map<string, string | number>();
  const effort = effortOf(conversation);
  const [cap] = caps;
  if (options.topK !== undefined) adjusted.set(fieldOf(conversation, "topK"), "dropped");
  if (thinking?.effort === undefined && effort !== undefined) {
    adjusted.set(fieldOf(conversation, "effort"), effort);
  }
  if (cap !== undefined && cap.tokens < leastCap) adjusted.set(cap.field, leastCap);
  if (hasLost) adjusted.set(fieldOf(conversation, "turns"), "server-blocks-dropped");
  return adjusted;
}

/** Models that do not reason refuse to encrypt what they do not have. */
function included({ options }: Conversation, model: string): readonly string[] | undefined {
  const wanted = [
    ...(/(?:^|[./])(?:chatgpt-4|gpt-[34])/.test(model) ? [] : ["reasoning.encrypted_content"]),
    ...(options.logprobs === true ? ["message.output_text.logprobs"] : []),
  ];
  return wanted.length === 0 ? undefined : wanted;
}

function summaryOf({ thinking }: Conversation): string | undefined {
  if (thinking?.summary !== undefined) return thinking.summary;
  return thinking?.display === "summarized" ? "auto" : undefined;
}

function writeFormat({ format, wire }: Conversation): Written | undefined {
  if (format === undefined) return undefined;
  const isOwn = wire === "responses";
  const extra = isOwn ? format.extra : undefined;
  if (format.type !== "schema") {
    if (format.type === "text" && !isOwn) return undefined;
    return { type: format.type === "json" ? "json_object" : "text", ...extra };
  }
  const { name = "answer", description, schema, strict, inner } = format;
  return { type: "json_schema", name, description, schema, strict, ...(isOwn && inner) };
}

function isOld(tool: Tool): boolean {
  return tool.isOld === true;
}

/** Tools of a group that stand together are written as a group, where the server knows groups. */
function writeTools({ tools, wire }: Conversation, hasGroups: boolean): readonly Written[] {
  const written: Written[] = [];
  let group: { readonly name: string; readonly tools: Written[] } | undefined;
  for (const tool of tools) {
    const { namespace, namespaceDescription: description } = tool;
    if (namespace === undefined || !hasGroups) {
      group = undefined;
      written.push(writeTool({ ...tool, name: flatNameOf(tool) }, wire === "responses"));
      continue;
    }
    if (group?.name !== namespace) {
      group = { name: namespace, tools: [] };
      written.push({ type: "namespace", name: namespace, description, tools: group.tools });
    }
    group.tools.push(writeTool(tool, wire === "responses"));
  }
  return written;
}

/** Here a function without `strict` is strict, on the other wires it is not. */
function writeTool(tool: Tool, isOwn: boolean): Written {
  const { kind, name, description, parameters, strict, grammar, inner, extra } = tool;
  const own = isOwn ? extra : undefined;
  if (kind === "custom") {
    const format = grammar === undefined ? inner?.["format"] : { type: "grammar", ...grammar };
    return { type: kind, name, description, format, ...own };
  }
  const sent = isOwn ? strict : (strict ?? false);
  const schema = isOwn ? parameters : (parameters ?? { type: "object", properties: {} });
  return { type: kind, name, description, parameters: schema, strict: sent, ...own };
}

function writeChoice({ toolChoice, tools }: Conversation, hasGroups: boolean): unknown {
  if (toolChoice === undefined) return undefined;
  const named = ({ kind, name }: { readonly kind: ToolKind; readonly name: string }): Written => {
    const tool = tools.find((each) => each.kind === kind && flatNameOf(each) === name);
    if (tool?.namespace === undefined || !hasGroups) return { type: kind, name };
    return { type: kind, name: tool.name, namespace: tool.namespace };
  };
  switch (toolChoice.mode) {
    case "named":
      return named(toolChoice);
    case "allowed": {
      const mode = toolChoice.isRequired ? "required" : "auto";
      return { type: "allowed_tools", mode, tools: toolChoice.tools.map(named) };
    }
    default:
      return toolChoice.mode;
  }
}

/** Parts of a message that goes on. */
interface OpenMessage {
  readonly phase: unknown;
  readonly blocks: Block[];
}

/** Writes the turns of one conversation as items. */
class ItemWriter {
  /** Whether the caller speaks this wire, and whether its items and fields are sent on. */
  readonly #isOwn: boolean;
  readonly #forwards: boolean;
  readonly #items: Written[] = [];
  /** The kinds of calls by their ids. */
  readonly #calls = new Map<string, ToolKind>();
  #functionCalls = 0;
  hasLost = false;

  constructor(isOwn: boolean, forwards: boolean) {
    this.#isOwn = isOwn;
    this.#forwards = forwards;
  }

  write(turns: readonly Turn[]): readonly Written[] {
    for (const turn of turns) this.#writeTurn(turn);
    return this.#items;
  }

  #writeTurn(turn: Turn): void {
    let open: OpenMessage | undefined;
    const close = (): void => {
      if (open !== undefined) this.#items.push(this.#message(turn, open));
      open = undefined;
    };
    const lastSaid = turn.blocks.findLastIndex(({ type }) => type !== "reasoning");
    for (const [index, block] of turn.blocks.entries()) {
      const item = this.#item(block);
      if (item !== undefined) {
        close();
        // A thought is refused without the item that it led to.
        if (block.type !== "reasoning" || index < lastSaid) this.#items.push(item);
      } else if (block.type === "foreign" && !this.#forwards && block.text === undefined) {
        this.hasLost = true;
      } else if (block.type !== "reasoning") {
        const phase = block.extra?.["phase"];
        if (open !== undefined && open.phase !== phase) close();
        open ??= { phase, blocks: [] };
        open.blocks.push(block);
      }
    }
    close();
  }

  /** Undefined for a part of a message, and for a thought that its server cannot know. */
  #item(block: Block): Written | undefined {
    switch (block.type) {
      case "reasoning":
        return block.opaque === undefined ? undefined : reasoningOf(block, block.opaque);
      case "tool-call":
        return this.#call(block);
      case "tool-result":
        return this.#result(block);
      case "foreign":
        return this.#forwards && !isPart(block.at) ? { ...block.value } : undefined;
      default:
        return undefined;
    }
  }

  #message(turn: Turn, { blocks, phase }: OpenMessage): Written {
    const { role, isPlain, extra } = turn;
    const [only, other] = blocks;
    const parts = blocks.flatMap((each) => this.#parts(each, role));
    const isText = only?.type === "text" && Object.keys(parts[0] ?? {}).length === 2;
    const content = isPlain === true && isText && other === undefined ? only.text : parts;
    const own = this.#forwards ? extra : undefined;
    return { type: "message", role, content, phase: this.#isOwn ? phase : undefined, ...own };
  }

  #parts(block: Block, role?: Turn["role"]): readonly Written[] {
    const beside = {
      ...writeMark(block.cacheMark, breakpoint),
      ...(this.#forwards && withoutPhase(block.extra)),
    };
    switch (block.type) {
      case "text":
        return [{ type: textTypeOf(role), text: block.text, ...beside }];
      case "refusal":
        return [{ type: "refusal", refusal: block.text, ...beside }];
      case "image": {
        const { url, detail } = block;
        return [{ type: "input_image", image_url: url, detail, ...beside }];
      }
      case "document":
        return this.#document(block, beside);
      case "foreign":
        if (block.text !== undefined) return [{ type: textTypeOf(role), text: block.text }];
        return this.#forwards ? [{ ...block.value }] : [];
      default:
        throw unsupported(block.at, "This model takes no sound. Send a text in its place.");
    }
  }

  #document(block: DocumentBlock, beside: Written): readonly Written[] {
    const { data, text, url, context, at } = block;
    const words = context === undefined ? [] : [{ type: "input_text", text: context }];
    if (text !== undefined) return [...words, { type: "input_text", text, ...beside }];
    if (url !== undefined || /^\s*(?!data:)[a-z][a-z0-9+.-]*:/i.test(data ?? "")) {
      throw unsupported(at, "Files are accepted only as data: send the file itself.");
    }
    const filename = block.filename ?? (this.#isOwn ? undefined : "document");
    return [...words, { type: "input_file", filename, file_data: data, ...beside }];
  }

  #call({ id, kind, name, namespace, arguments: input, extra }: ToolCallBlock): Written {
    const callId = id === undefined ? `call_${(this.#functionCalls += 1)}` : sentId(id);
    this.#calls.set(callId, kind);
    return {
      type: kind === "custom" ? "custom_tool_call" : "function_call",
      call_id: callId,
      ...(this.#forwards
        ? { name, namespace, ...extra }
        : { name: flatNameOf({ name, namespace }) }),
      [kind === "custom" ? "input" : "arguments"]: input,
    };
  }

  #result(block: ToolResultBlock): Written {
    const { callId, isPlain, extra } = block;
    const id = callId === undefined ? `call_${this.#functionCalls}` : sentId(callId);
    const content: readonly ResultContent[] = this.#isOwn ? block.content : asError(block);
    if (content.some(isLost) && !this.#forwards) this.hasLost = true;
    const [only, other] = content;
    const isText = only === undefined || (other === undefined && only.type === "text");
    const text = only?.type === "text" ? only.text : "";
    const isOne = isText && (isPlain === true || (!this.#isOwn && only?.cacheMark === undefined));
    return {
      type: this.#calls.get(id) === "custom" ? "custom_tool_call_output" : "function_call_output",
      call_id: id,
      output: isOne ? text : content.flatMap((each) => this.#parts(each)),
      ...(this.#forwards && extra),
    };
  }
}

const breakpoint: ReadonlySet<string> = new Set(["prompt_cache_breakpoint"]);

function reasoningOf({ text, isRedacted }: ReasoningBlock, opaque: string): Written {
  return {
    type: "reasoning",
    summary: text === "" ? [] : [{ type: "summary_text", text }],
    encrypted_content: isRedacted === true ? redactedMark + opaque : opaque,
  };
}

function textTypeOf(role: Turn["role"] | undefined): string {
  return role === "assistant" ? "output_text" : "input_text";
}

/** The phase is the message's. */
function withoutPhase(extra: ExtraFields | undefined): ExtraFields | undefined {
  if (extra === undefined) return undefined;
  const { phase: _, ...rest } = extra;
  return rest;
}

/** Whether a block that only this wire knows stood within an item. */
function isPart(at: string): boolean {
  return /\.(?:content|output)\[\d+\]$/.test(at);
}

/** The longest id of a call that the API takes. */
const longestId = 64;

function sentId(id: string): string {
  return id.length <= longestId ? id : hash("sha256", id, "hex").slice(0, longestId);
}
