import {
  type Conversation,
  flatNameOf,
  type Tool,
  type ToolChoice,
  type ToolKind,
} from "../../domain/chat/conversation.ts";
import { nearestEffort } from "../../domain/chat/thinking-effort.ts";
import { markField, writeMark } from "./cache-marks.ts";
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

/**
 * The body of `POST /v1/chat/completions` for a conversation of any wire, with only the fields that
 * the rules forward. `model` is the server's name of it. Throws `UpstreamFailure` for what the wire
 * cannot say.
 */
export function writeChatRequest(
  conversation: Conversation,
  model: string,
  rules: RequestRules,
): Written {
  const isOwn = conversation.wire === "chat";
  const { root } = rules.fields;
  const body: Written = {
    model,
    messages: new MessageWriter(rules, isOwn).write(conversation.turns),
  };
  writeTools(conversation, body, rules);
  writeOptions(conversation, body, rules);
  if (isOwn) {
    const { extra } = conversation;
    for (const field in extra) if (root.has(field)) body[field] = extra[field];
  }
  delete body["stream_options"];
  if (conversation.isStreamed) {
    body["stream"] = true;
    // Always requested: the ledger needs the counts, even if the caller does not.
    if (rules.streamUsage) body["stream_options"] = { include_usage: true };
  }
  for (const field of rules.dropFields) delete body[field];
  return body;
}

function writeOptions(conversation: Conversation, body: Written, rules: RequestRules): void {
  const { options, wire } = conversation;
  body["temperature"] = options.temperature;
  body["top_p"] = options.topP;
  if (rules.fields.root.has("top_k")) body["top_k"] = options.topK;
  body["stop"] = options.stop;
  body["n"] = options.n;
  body["presence_penalty"] = options.presencePenalty;
  body["frequency_penalty"] = options.frequencyPenalty;
  body["logit_bias"] = options.logitBias;
  body["logprobs"] = options.logprobs;
  body["top_logprobs"] = options.topLogprobs;
  body["seed"] = options.seed;
  body["verbosity"] = options.verbosity;
  // Messages has other tiers.
  if (wire !== "messages") body["service_tier"] = options.serviceTier;
  body["user"] = options.user;
  body["safety_identifier"] = options.safetyIdentifier;
  body["prompt_cache_key"] = options.promptCacheKey;
  body["metadata"] = options.metadata;
  body["reasoning_effort"] = effortOf(conversation);
  body["response_format"] = writeFormat(conversation);
  writeCaps(conversation, body, rules);
}

function effortOf({ thinking }: Conversation): string | undefined {
  if (thinking === undefined) return undefined;
  const { effort, budget } = thinking;
  return effort ?? (budget === undefined ? undefined : nearestEffort(budget));
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
  if (tools.length === 0) return;
  const marks = conversation.wire === "chat" ? undefined : rules.fields.part;
  const current = tools.filter(({ isOld }) => isOld === undefined);
  const old = tools.filter(({ isOld }) => isOld === true);
  if (current.length > 0) body["tools"] = current.map((tool) => writeTool(tool, marks));
  if (old.length > 0) body["functions"] = old.map((tool) => definitionOf(tool, marks));
  body["parallel_tool_calls"] = options.parallelToolCalls;
  if (toolChoice === undefined) return;
  const field = choiceField(tools);
  body[field] = writeChoice(toolChoice, tools, field === "function_call");
}

/** `marks`: the fields of marks that are sent. Undefined: a chat caller's tools are sent whole. */
function writeTool(tool: Tool, marks: ReadonlySet<string> | undefined): Written {
  const { kind, cacheMark, extra } = tool;
  const written: Written = { type: kind, [kind]: definitionOf(tool, marks) };
  if (cacheMark?.isInner === undefined) addMark(written, cacheMark, marks);
  return marks === undefined ? Object.assign(written, extra) : written;
}

function definitionOf(tool: Tool, marks: ReadonlySet<string> | undefined): Written {
  const { kind, description, parameters, strict, grammar, cacheMark, inner } = tool;
  const format = grammar && { type: "grammar", grammar };
  const written: Written = {
    name: flatNameOf(tool),
    description,
    ...(kind === "custom" ? { format } : { parameters, strict }),
  };
  if (cacheMark?.isInner === true) addMark(written, cacheMark, marks);
  return marks === undefined ? Object.assign(written, inner) : written;
}

function addMark(
  written: Written,
  mark: Tool["cacheMark"],
  marks: ReadonlySet<string> | undefined,
): void {
  const field = markField(mark);
  if (mark === undefined || field === undefined) return;
  if (marks === undefined || marks.has(field)) written[field] = writeMark(mark);
}

function writeChoice(choice: ToolChoice, tools: readonly Tool[], isOld: boolean): unknown {
  const named = ({ kind, name }: { readonly kind: ToolKind; readonly name: string }): Written => {
    const tool = tools.find((each) => each.kind === kind && each.name === name);
    return { type: kind, [kind]: { name: tool === undefined ? name : flatNameOf(tool) } };
  };
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
