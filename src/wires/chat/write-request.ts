import { nothingAdjusted } from "../../domain/chat/answer.ts";
import {
  type AdjustedFields,
  type Conversation,
  fieldOf,
  flatNameOf,
  type Tool,
  type ToolChoice,
  type ToolKind,
} from "../../domain/chat/conversation.ts";
import { effortOf } from "../openai-format.ts";
import { asChatTurns, type ChatTurns, isLost } from "./as-chat-turns.ts";
import { writeMark } from "./cache-marks.ts";
import { choiceField } from "./read-request.ts";
import { type MessageRules, MessageWriter, type Written } from "./write-message.ts";

/** How requests are written for one server. */
export interface RequestRules extends MessageRules {
  /** Root fields that are never sent. */
  readonly dropFields: readonly string[];
  readonly maxTokensField: "max_tokens" | "max_completion_tokens" | "as_sent";
  /** Whether the usage of a stream is asked for. */
  readonly streamUsage: boolean;
}

export interface WrittenRequest {
  readonly body: Written;
  /** What chat cannot say of a conversation of another wire. */
  readonly adjusted: AdjustedFields;
}

/**
 * The body of `POST /v1/chat/completions` for a conversation of any wire, with only the fields that
 * the rules forward. `model` is the server's name of it. Throws `UpstreamFailure` for what the wire
 * cannot say.
 */
export function writeChatRequest(
  conversation: Conversation,
  model: string,
  rules: RequestRules,
): WrittenRequest {
  const { wire, turns, tools, isStreamed, options, extra } = conversation;
  const { root } = rules.fields;
  const isOwn = wire === "chat";
  const hasUsage = isStreamed && rules.streamUsage;
  const said = isOwn ? { turns, hasMoved: false } : asChatTurns(turns);
  const body: Written = {
    model,
    messages: new MessageWriter(rules, isOwn).write(said.turns),
    stream: isStreamed ? true : undefined,
    // Always requested: the ledger needs the counts, even if the caller does not.
    stream_options: hasUsage ? { include_usage: true } : undefined,
    temperature: options.temperature,
    top_p: options.topP,
    top_k: root.has("top_k") ? options.topK : undefined,
    stop: options.stop,
    n: options.n,
    presence_penalty: options.presencePenalty,
    frequency_penalty: options.frequencyPenalty,
    logit_bias: options.logitBias,
    logprobs: options.logprobs,
    top_logprobs: options.topLogprobs,
    seed: options.seed,
    verbosity: options.verbosity,
    service_tier: options.serviceTier,
    user: options.user,
    safety_identifier: options.safetyIdentifier,
    prompt_cache_key: options.promptCacheKey,
    metadata: options.metadata,
    reasoning_effort: effortOf(conversation),
    response_format: writeFormat(conversation),
  };
  writeCaps(conversation, body, rules);
  if (tools.length > 0) writeTools(conversation, body, rules);
  if (isOwn) {
    for (const field in extra) {
      if (root.has(field) && field !== "stream_options") body[field] = extra[field];
    }
  }
  for (const field of rules.dropFields) delete body[field];
  return { body, adjusted: isOwn ? nothingAdjusted : adjustedIn(conversation, body, said) };
}

function adjustedIn(
  conversation: Conversation,
  body: Written,
  { hasMoved }: ChatTurns,
): AdjustedFields {
  const { options, thinking, turns } = conversation;
  const adjusted = new Map<string, string>();
  if (hasMoved) adjusted.set(fieldOf(conversation, "turns"), "tool-images-moved");
  if (options.topK !== undefined && body["top_k"] === undefined) {
    adjusted.set(fieldOf(conversation, "topK"), "dropped");
  }
  const effort = body["reasoning_effort"];
  if (thinking?.effort === undefined && typeof effort === "string") {
    adjusted.set(fieldOf(conversation, "effort"), effort);
  }
  if (turns.some(({ blocks }) => blocks.some(isLost))) {
    adjusted.set(fieldOf(conversation, "turns"), "server-blocks-dropped");
  }
  return adjusted;
}

function writeCaps(
  { wire, caps, ownCap }: Conversation,
  body: Written,
  { maxTokensField }: RequestRules,
): void {
  if (maxTokensField === "as_sent" && wire === "chat" && caps.length > 0) {
    for (const { field, tokens } of caps) body[field] = tokens;
    return;
  }
  const field = maxTokensField === "as_sent" ? "max_completion_tokens" : maxTokensField;
  body[field] = caps[0]?.tokens ?? ownCap;
}

function writeTools(conversation: Conversation, body: Written, rules: RequestRules): void {
  const { tools, toolChoice, options } = conversation;
  const marks = conversation.wire === "chat" ? undefined : rules.fields.part;
  const current = tools.filter(({ isOld }) => isOld === undefined);
  const old = tools.filter(({ isOld }) => isOld === true);
  if (current.length > 0) body["tools"] = current.map((tool) => writeTool(tool, marks));
  if (old.length > 0) body["functions"] = old.map((tool) => definitionOf(tool, marks));
  body["parallel_tool_calls"] = options.parallelToolCalls;
  if (toolChoice === undefined) return;
  const field = choiceField(tools);
  body[field] = writeChoice(toolChoice, field === "function_call");
}

/** `marks`: the fields of marks that are sent. Undefined: a chat caller's tools are sent whole. */
function writeTool(tool: Tool, marks: ReadonlySet<string> | undefined): Written {
  const { kind, cacheMark, extra } = tool;
  const written: Written = { type: kind, [kind]: definitionOf(tool, marks) };
  if (cacheMark?.isInner === undefined) Object.assign(written, writeMark(cacheMark, marks));
  return marks === undefined ? Object.assign(written, extra) : written;
}

function definitionOf(tool: Tool, marks: ReadonlySet<string> | undefined): Written {
  const { description, parameters, strict, grammar, cacheMark, inner } = tool;
  const written: Written = {
    name: flatNameOf(tool),
    description,
    parameters,
    strict,
    format: grammar && { type: "grammar", grammar },
  };
  if (cacheMark?.isInner === true) Object.assign(written, writeMark(cacheMark, marks));
  return marks === undefined ? Object.assign(written, inner) : written;
}

function writeChoice(choice: ToolChoice, isOld: boolean): unknown {
  const named = ({ kind, name }: { readonly kind: ToolKind; readonly name: string }): Written => ({
    type: kind,
    [kind]: { name },
  });
  switch (choice.mode) {
    case "named":
      return isOld ? { name: choice.name } : named(choice);
    case "allowed": {
      const mode = choice.isRequired ? "required" : "auto";
      return {
        type: "allowed_tools",
        allowed_tools: { mode, tools: choice.tools.map(named) },
      };
    }
    default:
      return choice.mode;
  }
}

/** Only chat callers name the format that is the usual one. Messages has no names of schemas. */
function writeFormat({ format, wire }: Conversation): Written | undefined {
  if (format === undefined) return undefined;
  const isOwn = wire === "chat";
  const extra = isOwn ? format.extra : undefined;
  switch (format.type) {
    case "schema": {
      const { name = "answer", description, schema, strict, inner } = format;
      const own = isOwn ? inner : undefined;
      const json = { name, description, schema, strict, ...own };
      return { type: "json_schema", json_schema: json, ...extra };
    }
    case "json":
      return { type: "json_object", ...extra };
    case "text":
      return isOwn ? { type: "text", ...extra } : undefined;
  }
}
