import {
  isResultContent,
  type Block,
  type CacheMark,
  type ToolKind,
  type Turn,
} from "../../domain/chat/conversation.ts";
import { isObject, type JsonObject, nonEmpty, objectOf, textOf } from "../../domain/json-fields.ts";
import { type FieldNames, fieldNames, fieldsBeyond, objectsIn } from "../fields.ts";
import { redactedMark } from "./output-items.ts";

/** An item that brings tools in place of the field `tools`, as Codex sends it. */
export interface ToolItem {
  readonly item: JsonObject;
  readonly at: string;
}

interface ReadInput {
  readonly turns: readonly Turn[];
  readonly toolItems: readonly ToolItem[];
}

/**
 * Reads `input`: a text, or items, after the items of the response that it continues. Neighbouring
 * items of the model (messages, thoughts, calls) are one turn, because other wires have the calls of
 * one step together.
 */
export function readItems(input: unknown, earlier: readonly unknown[]): ReadInput {
  const turns: OpenTurn[] = [];
  const toolItems: ToolItem[] = [];
  const read = (item: unknown, at: string): void => {
    // Null stands for an item that was left out.
    if (!isObject(item)) return;
    if (item["type"] === "additional_tools") toolItems.push({ item, at });
    else addTurn(turns, readItem(item, at, turns.at(-1)?.role));
  };
  for (const item of earlier) read(item, "previous_response_id");
  if (typeof input === "string") {
    const at = "input";
    turns.push({ role: "user", blocks: [{ type: "text", text: input, at }], isPlain: true, at });
  } else if (Array.isArray(input)) {
    input.forEach((item: unknown, index) => read(item, `input[${index}]`));
  }
  return { turns: outputsAfterCalls(turns), toolItems };
}

type OpenTurn = Turn & { readonly blocks: Block[] };

function addTurn(turns: OpenTurn[], turn: Turn): void {
  if (turn.blocks.length === 0) return;
  const last = turns.at(-1);
  if (turn.role === "assistant" && last?.role === "assistant") {
    // One by one: as arguments of a call, very many would overflow the stack.
    for (const block of turn.blocks) last.blocks.push(block);
  } else turns.push({ ...turn, blocks: [...turn.blocks] });
}

/**
 * OpenAI takes messages between a call and its outputs, as clients send them whose users speak
 * meanwhile. Other wires have the outputs directly after the call, so such messages come later. An
 * output that continues a response which has it already is left out.
 */
function outputsAfterCalls(turns: readonly Turn[]): readonly Turn[] {
  const ordered: Turn[] = [];
  const unanswered = new Set<string | undefined>();
  const answered = new Set<string | undefined>();
  let between: Turn[] = [];
  const endBetween = (): void => {
    for (const turn of between) ordered.push(turn);
    between = [];
  };
  for (const turn of turns) {
    const [first] = turn.blocks;
    if (turn.role === "assistant") {
      endBetween();
      ordered.push(turn);
      unanswered.clear();
      for (const block of turn.blocks) {
        if (block.type !== "tool-call") continue;
        unanswered.add(block.id);
        answered.delete(block.id);
      }
    } else if (first?.type === "tool-result") {
      if (answered.has(first.callId)) continue;
      ordered.push(turn);
      if (unanswered.delete(first.callId)) answered.add(first.callId);
      if (unanswered.size === 0) endBetween();
    } else (unanswered.size === 0 ? ordered : between).push(turn);
  }
  endBetween();
  return ordered;
}

/** `before`: the role of the turn before it. */
function readItem(item: JsonObject, at: string, before: Turn["role"] | undefined): Turn {
  switch (item["type"] ?? "message") {
    case "message":
      return readMessage(item, at);
    case "reasoning":
      return { role: "assistant", blocks: readReasoning(item, at), at };
    case "function_call":
      return { role: "assistant", blocks: [readCall(item, at, "function")], at };
    case "custom_tool_call":
      return { role: "assistant", blocks: [readCall(item, at, "custom")], at };
    case "function_call_output":
    case "custom_tool_call_output":
      return { role: "user", blocks: [readResult(item, at)], at };
    case "agent_message":
      return { role: "user", blocks: [readAgentMessage(item, at)], at };
    default: {
      // What no other wire understands stays where it is, in the turn of the model if there is one.
      const role = before === "assistant" ? before : "user";
      return { role, blocks: [{ type: "foreign", value: item, at }], at };
    }
  }
}

function readMessage(item: JsonObject, at: string): Turn {
  const { role, content } = item;
  // A phase is a property of the message, but messages of one turn are joined.
  const phase = nonEmpty(item["phase"]);
  const isOwn = role === "system" || role === "developer" || role === "assistant";
  const blocks = contentOf(content, `${at}.content`).map((block): Block => {
    // Only models refuse; others quote a refusal.
    if (block.type === "refusal" && role !== "assistant") return { ...block, type: "text" };
    return phase === undefined ? block : { ...block, extra: { ...block.extra, phase } };
  });
  return {
    role: isOwn ? role : "user",
    blocks,
    isPlain: typeof content === "string" ? true : undefined,
    extra: fieldsBeyond(item, messageFields),
    at,
  };
}

const messageFields = fieldNames("type role content id status phase");

function contentOf(content: unknown, at: string): readonly Block[] {
  if (typeof content === "string") return [{ type: "text", text: content, at }];
  return objectsIn(content).map((part, index) => readPart(part, `${at}[${index}]`));
}

function readPart(part: JsonObject, at: string): Block {
  const cacheMark = markOf(part);
  const extra = fieldsBeyond(part, partFields[textOf(part["type"]) ?? ""] ?? textFields);
  switch (part["type"]) {
    case "input_text":
    case "output_text":
    case "text":
      return { type: "text", text: textOf(part["text"]) ?? "", cacheMark, extra, at };
    case "refusal":
      return { type: "refusal", text: textOf(part["refusal"]) ?? "", cacheMark, extra, at };
    case "input_image": {
      const url = textOf(part["image_url"]) ?? "";
      return { type: "image", url, detail: textOf(part["detail"]), cacheMark, extra, at };
    }
    case "input_file": {
      const data = textOf(part["file_data"]);
      const filename = textOf(part["filename"]);
      return { type: "document", data, filename, cacheMark, extra, at };
    }
    default:
      return { type: "foreign", value: part, at };
  }
}

/** Annotations and probabilities of an earlier answer tell a model nothing. */
const textFields = fieldNames("type text annotations logprobs prompt_cache_breakpoint");
const partFields: Readonly<Record<string, FieldNames>> = {
  refusal: fieldNames("type refusal annotations logprobs prompt_cache_breakpoint"),
  input_image: fieldNames("type image_url detail prompt_cache_breakpoint"),
  input_file: fieldNames("type file_data filename prompt_cache_breakpoint"),
};

function markOf(holder: JsonObject): CacheMark | undefined {
  return isObject(holder["prompt_cache_breakpoint"]) ? { form: "breakpoint" } : undefined;
}

/** A thought without text and without ciphertext is nothing: its provider kept it. */
function readReasoning(item: JsonObject, at: string): readonly Block[] {
  const content = objectsIn(item["content"]);
  const texts = content.length > 0 ? content : objectsIn(item["summary"]);
  const text = texts.map((part) => textOf(part["text"]) ?? "").join("\n\n");
  const opaque = readEncrypted(textOf(item["encrypted_content"]) ?? "");
  if (text === "" && opaque === undefined) return [];
  return [{ type: "reasoning", text, ...opaque, at }];
}

function readEncrypted(
  content: string,
): { readonly opaque: string; readonly isRedacted?: true } | undefined {
  if (content === "") return undefined;
  if (!content.startsWith(redactedMark)) return { opaque: content };
  return { opaque: content.slice(redactedMark.length), isRedacted: true };
}

function readCall(item: JsonObject, at: string, kind: ToolKind): Block {
  const content = kind === "custom" ? "input" : "arguments";
  return {
    type: "tool-call",
    id: textOf(item["call_id"]) ?? "",
    kind,
    name: textOf(item["name"]) ?? "",
    namespace: nonEmpty(item["namespace"]),
    arguments: textOf(item[content]) ?? "",
    extra: fieldsBeyond(item, callFields, content),
    at,
  };
}

/** An item's own id is not that of the call: outputs name `call_id`. */
const callFields = fieldNames("type id call_id name namespace status");

function readResult(item: JsonObject, at: string): Block {
  const { output } = item;
  return {
    type: "tool-result",
    callId: textOf(item["call_id"]) ?? "",
    content: contentOf(output, `${at}.output`).filter(isResultContent),
    isPlain: typeof output === "string" ? true : undefined,
    extra: fieldsBeyond(item, resultFields),
    at,
  };
}

const resultFields = fieldNames("type id call_id output status");

/** What one agent of Codex tells another. A model without agents reads it as marked text. */
function readAgentMessage(item: JsonObject, at: string): Block {
  const { content } = item;
  const parts = objectsIn(content).map((part) => textOf(part["text"]) ?? "");
  const text = typeof content === "string" ? content : parts.join("\n");
  const names = ["author", "recipient"].map((field) => nameAttribute(item, field)).join("");
  return { type: "text", text: `<agent_message${names}>\n${text}\n</agent_message>`, at };
}

function nameAttribute(item: JsonObject, field: string): string {
  const value = item[field];
  const name = textOf(value) ?? textOf(objectOf(value)?.["name"]);
  return name === undefined ? "" : ` ${field}=${JSON.stringify(name)}`;
}
