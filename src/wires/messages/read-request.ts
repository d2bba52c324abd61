import type { AdjustedFields } from "../../domain/chat/answer.ts";
import { effortBudgets } from "../../domain/chat/thinking-effort.ts";
import {
  isResultContent,
  type AnswerFormat,
  type Block,
  type CacheMark,
  type Conversation,
  type DocumentBlock,
  type Options,
  type Thinking,
  type Tool,
  type ToolChoice,
  type Turn,
} from "../../domain/chat/conversation.ts";
import {
  flagOf,
  isObject,
  type JsonObject,
  nonEmpty,
  numberOf,
  objectOf,
  textOf,
} from "../../domain/json-fields.ts";
import { type FieldNames, fieldNames, fieldsBeyond, objectsIn } from "../fields.ts";

/**
 * Reads a body of `POST /v1/messages` or of `/v1/messages/count_tokens`. The body must be checked.
 * Empty texts are dropped, which the API itself refuses, and so are turns without any content.
 */
export function readMessagesRequest(body: JsonObject): Conversation {
  const offered = objectsIn(body["tools"]);
  const tools = offered.flatMap((tool, index) =>
    isServerTool(tool) ? [] : [readTool(tool, `tools[${index}]`)],
  );
  const cap = numberOf(body["max_tokens"]);
  const choice = objectOf(body["tool_choice"]);
  return {
    wire: "messages",
    model: textOf(body["model"]) ?? "",
    isStreamed: body["stream"] === true,
    turns: markedAtEnd(readTurns(body), readMark(body)),
    tools,
    toolChoice: tools.length === 0 ? undefined : readToolChoice(choice),
    format: readFormat(body),
    caps: cap === undefined ? [] : [{ field: "max_tokens", tokens: cap, isDemanded: true }],
    options: readOptions(body, choice),
    thinking: readThinking(body),
    extra: fieldsBeyond(body, rootFields) ?? {},
    adjusted: adjustedIn(body, tools.length < offered.length),
  };
}

/** A tool that the provider itself would run or define, by its dated type. */
export function isServerTool({ type }: JsonObject): boolean {
  return typeof type === "string" && type !== "custom";
}

const rootFields = fieldNames(
  "model stream system messages tools tool_choice max_tokens temperature top_p top_k " +
    "stop_sequences service_tier metadata thinking output_config output_format " +
    "cache_control",
);

function readOptions(body: JsonObject, choice: JsonObject | undefined): Options {
  const stop = body["stop_sequences"];
  const stops = Array.isArray(stop) ? stop.filter((text) => typeof text === "string") : [];
  return {
    temperature: numberOf(body["temperature"]),
    topP: numberOf(body["top_p"]),
    topK: numberOf(body["top_k"]),
    stop: stops.length === 0 ? undefined : stops,
    parallelToolCalls: choice?.["disable_parallel_tool_use"] === true ? false : undefined,
    serviceTier: tiers[textOf(body["service_tier"]) ?? ""],
    user: nonEmpty(objectOf(body["metadata"])?.["user_id"]),
  };
}

/** The words of the form are OpenAI's. */
const tiers: Readonly<Record<string, string>> = { auto: "auto", standard_only: "default" };

/** Modes that are new here let the model decide, as `adaptive` does. */
function readThinking(body: JsonObject): Thinking | undefined {
  const asked = effortIn(body);
  const effort = asked === undefined || efforts.has(asked) ? asked : newerEffort;
  const thinking = objectOf(body["thinking"]);
  if (thinking === undefined) return effort === undefined ? undefined : { effort };
  const type = thinking["type"];
  return {
    effort,
    budget: numberOf(thinking["budget_tokens"]),
    mode: type === "enabled" || type === "disabled" ? type : "adaptive",
    display: textOf(thinking["display"]),
  };
}

function effortIn(body: JsonObject): string | undefined {
  return textOf(objectOf(body["output_config"])?.["effort"]);
}

const efforts: ReadonlySet<string> = new Set(["none", ...Object.keys(effortBudgets)]);
/** For a word that is not known: those that came later than the others asked for more. */
const newerEffort = "max";

function adjustedIn(body: JsonObject, dropsTools: boolean): AdjustedFields | undefined {
  const adjusted = new Map<string, string>();
  if (dropsTools) adjusted.set("server_tools", "dropped");
  const effort = effortIn(body);
  if (effort !== undefined && !efforts.has(effort)) {
    adjusted.set("output_config.effort", newerEffort);
  }
  return adjusted.size === 0 ? undefined : adjusted;
}

/** `output_format` is the older place of the same. */
function readFormat(body: JsonObject): AnswerFormat | undefined {
  const format = objectOf(objectOf(body["output_config"])?.["format"] ?? body["output_format"]);
  if (format?.["type"] !== "json_schema") return undefined;
  const extra = fieldsBeyond(format, formatFields);
  return { type: "schema", schema: objectOf(format["schema"]), extra };
}

const formatFields = fieldNames("type schema");

function readToolChoice(choice: JsonObject | undefined): ToolChoice | undefined {
  switch (choice?.["type"]) {
    case "auto":
    case "none":
      return { mode: choice["type"] };
    case "any":
      return { mode: "required" };
    case "tool":
      return { mode: "named", kind: "function", name: textOf(choice["name"]) ?? "" };
    default:
      return undefined;
  }
}

function readTool(tool: JsonObject, at: string): Tool {
  return {
    kind: "function",
    name: textOf(tool["name"]) ?? "",
    description: textOf(tool["description"]),
    parameters: objectOf(tool["input_schema"]),
    strict: flagOf(tool["strict"]),
    cacheMark: readMark(tool),
    extra: fieldsBeyond(tool, toolFields),
    at,
  };
}

const toolFields = fieldNames("type name description input_schema strict cache_control");

function readTurns(body: JsonObject): readonly Turn[] {
  const turns: Turn[] = [];
  const system = readTurn({ role: "system", content: body["system"] }, "system", "system");
  if (system !== undefined) turns.push(system);
  objectsIn(body["messages"]).forEach((message, index) => {
    const at = `messages[${index}]`;
    const turn = readTurn(message, at, `${at}.content`);
    if (turn !== undefined) turns.push(turn);
  });
  return turns;
}

/** Undefined without content. `content` is the path of the content. */
function readTurn(message: JsonObject, at: string, content: string): Turn | undefined {
  const role = message["role"];
  const isMeant = role === "system" ? isInstruction : isFilled;
  const blocks = readContent(message["content"], content).filter(isMeant);
  if (blocks.length === 0) return undefined;
  return {
    role: role === "system" || role === "assistant" ? role : "user",
    blocks,
    isPlain: typeof message["content"] === "string" ? true : undefined,
    extra: fieldsBeyond(message, messageFields),
    at,
  };
}

const messageFields = fieldNames("role content");

function isFilled(block: Block): boolean {
  return block.type !== "text" || block.text !== "";
}

/** Claude Code's line for Anthropic's accounting is none; it differs between its builds. */
function isInstruction(block: Block): boolean {
  return isFilled(block) && !(block.type === "text" && block.text.startsWith(accountingLine));
}

const accountingLine = "x-anthropic-billing-header:";

function readContent(content: unknown, at: string): readonly Block[] {
  if (typeof content === "string") return [{ type: "text", text: content, at }];
  return objectsIn(content).flatMap((block, index) => readBlock(block, `${at}[${index}]`));
}

/** None of what says nothing; a document is followed by the images of its content. */
function readBlock(block: JsonObject, at: string): readonly Block[] {
  const cacheMark = readMark(block);
  const extra = fieldsBeyond(block, blockFields[textOf(block["type"]) ?? ""] ?? anyField);
  const { content } = block;
  switch (block["type"]) {
    case "text":
      return [{ type: "text", text: textOf(block["text"]) ?? "", cacheMark, extra, at }];
    case "image": {
      const url = urlOf(objectOf(block["source"]) ?? {});
      return [{ type: "image", url, cacheMark, extra, at }];
    }
    case "document":
      return readDocument(block, { cacheMark, extra, at });
    case "thinking": {
      const opaque = nonEmpty(block["signature"]);
      const text = textOf(block["thinking"]) ?? "";
      // A thought may have nothing to read, but a signature.
      if (text === "" && opaque === undefined) return [];
      return [{ type: "reasoning", text, opaque, extra, at }];
    }
    case "redacted_thinking": {
      const opaque = nonEmpty(block["data"]);
      if (opaque === undefined) return [];
      return [{ type: "reasoning", text: "", opaque, isRedacted: true, at }];
    }
    case "tool_use": {
      const id = textOf(block["id"]) ?? "";
      const name = textOf(block["name"]) ?? "";
      const input = JSON.stringify(block["input"] ?? {});
      const call = { id, kind: "function", name, arguments: input } as const;
      return [{ type: "tool-call", ...call, cacheMark, extra, at }];
    }
    case "tool_result":
      return [
        {
          type: "tool-result",
          callId: textOf(block["tool_use_id"]) ?? "",
          content: readContent(content, `${at}.content`).filter(isResultContent).filter(isFilled),
          isPlain: typeof content === "string" ? true : undefined,
          isError: block["is_error"] === true ? true : undefined,
          cacheMark,
          extra,
          at,
        },
      ];
    case "search_result": {
      const texts = objectsIn(content).map(({ text }) => textOf(text) ?? "");
      const about = [block["title"], block["source"]].flatMap((line) => nonEmpty(line) ?? []);
      const text = [...about, ...texts].join("\n");
      return [{ type: "foreign", value: block, text, cacheMark, at }];
    }
    default: {
      // A summary of the turns before it, which are not sent again.
      const text = block["type"] === "compaction" ? textOf(content) : undefined;
      return [{ type: "foreign", value: block, text, cacheMark, at }];
    }
  }
}

const anyField = fieldNames("type cache_control");
const blockFields: Readonly<Record<string, FieldNames>> = {
  text: fieldNames("type cache_control text"),
  image: fieldNames("type cache_control source"),
  document: fieldNames("type cache_control source title context"),
  thinking: fieldNames("type thinking signature"),
  tool_use: fieldNames("type cache_control id name input"),
  tool_result: fieldNames("type cache_control tool_use_id content is_error"),
};

function urlOf(source: JsonObject): string {
  if (source["type"] === "url") return textOf(source["url"]) ?? "";
  return `data:${textOf(source["media_type"]) ?? ""};base64,${textOf(source["data"]) ?? ""}`;
}

type Beside = Pick<DocumentBlock, "cacheMark" | "extra" | "at">;

function readDocument(block: JsonObject, { cacheMark, extra, at }: Beside): readonly Block[] {
  const source = objectOf(block["source"]) ?? {};
  const filename = nonEmpty(block["title"]);
  const context = nonEmpty(block["context"]);
  const about = { type: "document", filename, context, cacheMark, extra, at } as const;
  switch (source["type"]) {
    case "text":
      return [{ ...about, text: textOf(source["data"]) ?? "" }];
    case "content": {
      const blocks = readContent(source["content"], `${at}.source.content`);
      const texts = blocks.flatMap((part) => (part.type === "text" ? part.text : []));
      const images = blocks.filter((part) => part.type === "image");
      return [{ ...about, text: texts.join("\n") }, ...images];
    }
    default:
      return [{ ...about, data: urlOf(source) }];
  }
}

function readMark(holder: JsonObject): CacheMark | undefined {
  const control = holder["cache_control"];
  if (!isObject(control)) return undefined;
  const ttl = control["ttl"];
  return { ttl: ttl === "1h" || ttl === "5m" ? ttl : undefined, form: "control" };
}

/** A mark beside the messages is one on their last block, unless that has its own. */
function markedAtEnd(turns: readonly Turn[], cacheMark: CacheMark | undefined): readonly Turn[] {
  const last = turns.at(-1);
  const block = last?.blocks.at(-1);
  if (cacheMark === undefined || last === undefined || block === undefined) return turns;
  if (block.cacheMark !== undefined) return turns;
  const blocks = [...last.blocks.slice(0, -1), { ...block, cacheMark }];
  return [...turns.slice(0, -1), { ...last, blocks }];
}
