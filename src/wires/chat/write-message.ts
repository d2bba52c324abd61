import type { ExtraFields } from "../../domain/chat/answer.ts";
import {
  type AudioBlock,
  type Block,
  type DocumentBlock,
  flatNameOf,
  type ImageBlock,
  type RefusalBlock,
  type TextBlock,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
} from "../../domain/chat/conversation.ts";
import { unsupported } from "../../domain/errors/upstream-failure.ts";
import { isResult } from "./as-chat-turns.ts";
import { writeMark } from "./cache-marks.ts";
import { callFieldsIn, foreignCall } from "./call-thoughts.ts";
import type { Quirk } from "./quirks.ts";

/** Which fields are sent to a server, by their place in the body. */
export interface ForwardedFields {
  readonly root: ReadonlySet<string>;
  readonly message: ReadonlySet<string>;
  /** In addition to the field named after the part's type, such as `text` of a `text` part. */
  readonly part: ReadonlySet<string>;
  /** Within the `audio` of an assistant's message. */
  readonly spoken: ReadonlySet<string>;
  /** Of a tool call, and of its `function` or `custom`. */
  readonly call: ReadonlySet<string>;
  readonly callBody: ReadonlySet<string>;
  /** Within `image_url`, `input_audio` and `file` of a part. */
  readonly media: ReadonlySet<string>;
}

/** How messages are written for one server. */
export interface MessageRules {
  readonly fields: ForwardedFields;
  readonly instructionRole: "system" | "developer" | "as_sent";
  readonly flattenTextParts: boolean;
  readonly quirks?: ReadonlySet<Quirk>;
}

/** An object of the body; what is undefined in it is not sent. */
export type Written = Record<string, unknown>;

/**
 * Writes the turns of one conversation. `isOwn`: it came as a chat request; else its turns are those of
 * `asChatTurns`.
 */
export class MessageWriter {
  readonly #rules: MessageRules;
  readonly #isOwn: boolean;
  readonly #thoughtsField: "reasoning" | "reasoning_content";

  constructor(rules: MessageRules, isOwn: boolean) {
    this.#rules = rules;
    this.#isOwn = isOwn;
    const isReasoning = rules.quirks?.has("thoughts_as_reasoning") === true;
    this.#thoughtsField = isReasoning ? "reasoning" : "reasoning_content";
  }

  write(turns: readonly Turn[]): readonly Written[] {
    const messages: Written[] = [];
    for (const turn of turns) this.#writeTurn(turn, messages);
    return messages;
  }

  #writeTurn(turn: Turn, messages: Written[]): void {
    if (turn.role === "assistant") return this.#writeAssistant(turn, messages);
    const before = messages.length;
    for (const block of turn.blocks) if (isResult(block)) messages.push(this.#result(block));
    const content = this.#content(turn.blocks, turn.isPlain);
    if (content !== undefined) {
      messages.push(this.#message(turn, { role: this.#roleOf(turn.role), content }));
    } else if (messages.length > before) {
      // The fields of a chat message with a result are those of its turn.
      Object.assign(messages.at(-1) ?? {}, this.#message(turn, {}));
    }
  }

  #roleOf(role: Turn["role"]): string {
    const { instructionRole } = this.#rules;
    if (role === "user") return role;
    if (instructionRole !== "as_sent") return instructionRole;
    // Every server of this wire knows `system`, which Responses callers hardly use.
    return this.#isOwn ? role : "system";
  }

  #result(block: ToolResultBlock): Written {
    const { callId, name, isPlain } = block;
    const content = this.#content(block.content, isPlain);
    const mark = writeMark(block.cacheMark, this.#rules.fields.message);
    if (callId === undefined) return { role: "function", name, content: content ?? null, ...mark };
    return { role: "tool", content: content ?? "", tool_call_id: callId, name, ...mark };
  }

  /** Some servers require content, if only null. OpenAI refuses an empty list of calls. */
  #writeAssistant(turn: Turn, messages: Written[]): void {
    const written = this.#content(turn.blocks, turn.isPlain);
    const content = written === undefined || written.length === 0 ? null : written;
    const message = this.#message(turn, { role: "assistant", content });
    const calls: Written[] = [];
    const signed = this.#isOwn ? undefined : callFieldsIn(turn.blocks);
    for (const block of turn.blocks) {
      switch (block.type) {
        case "reasoning":
          this.#addThought(message, block);
          break;
        case "foreign":
          if (this.#isOwn) this.#addDetail(message, block.value);
          break;
        case "refusal":
          if (!isBeside(block, this.#isOwn)) break;
          if (this.#isOwn || block.text !== "") addText(message, "refusal", block.text);
          break;
        case "spoken":
          message["audio"] = {
            id: block.id,
            ...this.#some(block.inner, this.#rules.fields.spoken),
          };
          break;
        case "tool-call":
          if (block.id !== undefined) {
            calls.push(Object.assign(this.#call(block, block.id), signed?.get(block.id)));
          } else message["function_call"] = { ...bodyOf(block), ...this.#own(block.inner) };
          break;
        default:
      }
    }
    if (calls.length > 0) this.#addCalls(message, calls);
    // From another wire, a turn may have nothing that chat can say, or only thoughts.
    const isSaid = content !== null || calls.length > 0 || message["refusal"] !== undefined;
    if (this.#isOwn || isSaid) messages.push(message);
  }

  #addCalls(message: Written, calls: readonly Written[]): void {
    const { quirks } = this.#rules;
    message["tool_calls"] = calls;
    if (quirks?.has("needs_thoughts") === true) message[this.#thoughtsField] ??= "";
    const [first] = calls;
    if (first !== undefined && quirks?.has("needs_signatures") === true) {
      first["extra_content"] ??= foreignCall;
    }
  }

  #addThought(message: Written, block: Extract<Block, { type: "reasoning" }>): void {
    const { text, opaque, isRedacted, extra } = block;
    if (!this.#isOwn) {
      if (text !== "") addText(message, this.#thoughtsField, text);
      return;
    }
    if (opaque === undefined) return addText(message, this.#thoughtsField, text);
    const type = extra?.["type"];
    if (isRedacted === true) {
      this.#addDetail(message, { type: "reasoning.encrypted", ...extra, data: opaque });
    } else {
      const name = type === "thinking" ? "thinking" : "text";
      const own = { [name]: text, signature: opaque };
      this.#addDetail(message, { type: "reasoning.text", ...extra, ...own });
    }
  }

  /** An entry of the field that has details of its type. */
  #addDetail(message: Written, detail: ExtraFields): void {
    const type = detail["type"];
    const isBlock = type === "thinking" || type === "redacted_thinking";
    const field = isBlock ? "thinking_blocks" : "reasoning_details";
    if (!this.#rules.fields.message.has(field)) return;
    const before = message[field];
    if (Array.isArray(before)) before.push(detail);
    else message[field] = [detail];
  }

  /**
   * The fields of a call that are not OpenAI's go back to the upstream that wrote them, and to no
   * other. `extra_content` is a field of Google's requests, too: where nobody knows who wrote the
   * call, the caller's own is sent.
   */
  #call(block: ToolCallBlock, id: string): Written {
    const { fields } = this.#rules;
    const { kind, extra, inner, author } = block;
    const body = bodyOf(block);
    const call: Written = { id, type: kind, [kind]: body };
    if (author === "this") {
      Object.assign(body, this.#own(inner));
      return Object.assign(call, this.#own(extra));
    }
    const google = author === undefined ? "extra_content" : undefined;
    Object.assign(body, this.#some(inner, fields.callBody));
    return Object.assign(call, this.#some(extra, fields.call, google));
  }

  /** Adds what a turn has beside its content. */
  #message({ name, extra, cacheMark }: Turn, message: Written): Written {
    const { fields } = this.#rules;
    if (name !== undefined) message["name"] = name;
    if (extra === undefined && cacheMark === undefined) return message;
    const mark = writeMark(cacheMark, fields.message);
    return Object.assign(message, mark, this.#some(extra, fields.message));
  }

  /** Undefined where there is none. A plain text stays one; of other wires, each single text is. */
  #content(blocks: readonly Block[], isPlain?: boolean): string | readonly Written[] | undefined {
    const only = blocks.length === 1 ? blocks[0] : undefined;
    if (isPlain === true && only?.type === "text") return only.text;
    const parts: Written[] = [];
    for (const block of blocks) {
      if (!isContent(block, this.#isOwn)) continue;
      const about = block.type === "document" ? block.context : undefined;
      if (about !== undefined) parts.push({ type: "text", text: about });
      parts.push(this.#part(block));
    }
    if (parts.length === 0) return undefined;
    const isJoined = this.#rules.flattenTextParts && parts.every(({ type }) => type === "text");
    if (isJoined) return parts.map(({ text }) => text).join("\n");
    const part = parts.length === 1 ? parts[0] : undefined;
    const isText = part !== undefined && typeof part["text"] === "string";
    if (!isText || (isPlain !== true && this.#isOwn)) return parts;
    return Object.keys(part).length === 2 ? String(part["text"]) : parts;
  }

  #part(block: PartBlock): Written {
    const { fields } = this.#rules;
    const part = this.#partOf(block);
    if (block.cacheMark === undefined && block.extra === undefined) return part;
    return Object.assign(
      part,
      writeMark(block.cacheMark, fields.part),
      this.#some(block.extra, fields.part),
    );
  }

  #partOf(block: PartBlock): Written {
    const { media } = this.#rules.fields;
    switch (block.type) {
      case "text":
        return { type: "text", text: block.text };
      case "refusal":
        return { type: "refusal", refusal: block.text };
      case "image": {
        const { url, detail, inner } = block;
        return { type: "image_url", image_url: { url, detail, ...this.#some(inner, media) } };
      }
      case "audio": {
        const { data, format, inner } = block;
        return { type: "input_audio", input_audio: { data, format, ...this.#some(inner, media) } };
      }
      case "document": {
        const { text, data, inner } = block;
        if (text !== undefined) return { type: "text", text };
        refuseAddress(block, this.#isOwn);
        // OpenAI requires a name, which other wires leave out.
        const filename = block.filename ?? (this.#isOwn ? undefined : "document");
        const file = { filename, file_data: data, ...this.#some(inner, media) };
        return { type: "file", file };
      }
    }
  }

  /** Fields without a name in the conversation are the caller's wire's. */
  #own(extra: ExtraFields | undefined): ExtraFields | undefined {
    return this.#isOwn ? extra : undefined;
  }

  /** Those of them that are forwarded, and `also`. */
  #some(
    extra: ExtraFields | undefined,
    forwarded: ReadonlySet<string>,
    also?: string,
  ): Written | undefined {
    if (extra === undefined || !this.#isOwn) return undefined;
    let some: Written | undefined;
    for (const field in extra) {
      if (!forwarded.has(field) && field !== also) continue;
      some ??= {};
      some[field] = extra[field];
    }
    return some;
  }
}

/** Chat has a field for the refusal of a message; the other wires' refusals are written so, too. */
function isBeside({ isBeside }: RefusalBlock, isOwn: boolean): boolean {
  return isBeside === true || !isOwn;
}

type PartBlock = TextBlock | RefusalBlock | ImageBlock | DocumentBlock | AudioBlock;

function isContent(block: Block, isOwn: boolean): block is PartBlock {
  switch (block.type) {
    case "text":
    case "image":
    case "document":
    case "audio":
      return true;
    case "refusal":
      return !isBeside(block, isOwn);
    default:
      return false;
  }
}

function bodyOf(block: ToolCallBlock): Written {
  const field = block.kind === "custom" ? "input" : "arguments";
  return { name: flatNameOf(block), [field]: block.arguments };
}

function addText(message: Written, field: string, text: string): void {
  const before = message[field];
  message[field] = typeof before === "string" ? before + text : text;
}

/** OpenAI accepts files only as data; some servers would fetch any address. */
function refuseAddress({ data, url, at }: DocumentBlock, isOwn: boolean): void {
  const isAddress = data !== undefined && /^\s*(?!data:)[a-z][a-z0-9+.-]*:/i.test(data);
  if (url === undefined && !isAddress) return;
  throw unsupported(
    isOwn ? "file_data" : at,
    "Files are accepted only as data, not by address: " +
      (isOwn ? "send file_data as a data URL." : "send the file itself."),
  );
}
