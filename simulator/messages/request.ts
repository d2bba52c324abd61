import type { Prompt, Tool, ToolUse, Turn } from "../answer/prompt.ts";
import { promptedForm } from "../answer/prompted-form.ts";
import { contextWindowIn, countPromptTokens } from "../answer/prompt.ts";
import { type JsonRecord, listOf, numberOf, recordOf, stringOf } from "../json.ts";
import { invalid, tooLong } from "./errors.ts";
import { checkThoughts } from "./thoughts.ts";

/** A request of the Messages API that it would take. */
export interface MessagesRequest {
  readonly body: JsonRecord;
  readonly prompt: Prompt;
  readonly isStreamed: boolean;
  readonly promptTokens: number;
}

/** Throws `MessagesError` if the API would refuse the request. `isCount`: only its input counts. */
export function readRequest(
  body: JsonRecord,
  contextWindow: number | undefined,
  isCount: boolean,
): MessagesRequest {
  const maxTokens = numberOf(body["max_tokens"]);
  if (!isCount && (maxTokens === undefined || maxTokens < 1)) {
    throw invalid("max_tokens: Field required");
  }
  const { thinking, output_config: output } = body;
  const { type, budget_tokens: budget } = recordOf(thinking);
  const isThinking = type === "enabled" || type === "adaptive";
  const toolUse = readChoice(body, isThinking);
  if (type === "enabled") checkBudget(numberOf(budget), maxTokens);
  if (isThinking && body["temperature"] !== undefined && body["temperature"] !== 1) {
    throw invalid("`temperature` may only be set to 1 when thinking is enabled.");
  }
  const turns = [...readSystem(body["system"]), ...readMessages(body["messages"])];
  const prompt: Prompt = {
    model: stringOf(body["model"]),
    turns,
    tools: listOf(body["tools"]).map(readTool),
    toolUse,
    output: readFormat(recordOf(recordOf(output)["format"]), turns),
    maxTokens,
    stopSequences: listOf(body["stop_sequences"]).map(stringOf),
    seed: "",
    reasoningEffort: isThinking ? stringOf(recordOf(output)["effort"]) || "low" : undefined,
  };
  checkThoughts(body);
  const promptTokens = countPromptTokens(prompt);
  const window = contextWindowIn(prompt.model) ?? contextWindow;
  if (window !== undefined && promptTokens > window) throw tooLong(promptTokens, window);
  return { body, prompt, isStreamed: body["stream"] === true, promptTokens };
}

function checkBudget(budget = 0, maxTokens = Number.POSITIVE_INFINITY): void {
  if (budget < 1024) {
    throw invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024");
  }
  if (budget < maxTokens) return;
  throw invalid("`max_tokens` must be greater than `thinking.budget_tokens`.");
}

function readSystem(system: unknown): readonly Turn[] {
  const text = textOf(system, "system");
  return text === "" ? [] : [{ ...nothing, role: "system", text }];
}

/** Roles need not alternate, but calls must be answered at the beginning of the next turn. */
function readMessages(messages: unknown): readonly Turn[] {
  const names = new Map<string, string>();
  let open: readonly string[] = [];
  const list = listOf(messages).map(recordOf);
  if (list[0]?.["role"] !== "user") throw invalid("messages.0: the first role must be user");
  const turns = list.flatMap(({ role, content }, index) => {
    const at = `messages.${index}`;
    const blocks = typeof content === "string" ? [] : listOf(content).map(recordOf);
    if (content === "" || (typeof content !== "string" && blocks.length === 0)) {
      throw invalid(`${at}: all messages must have non-empty content`);
    }
    const results = blocks.filter(({ type }) => type === "tool_result");
    const answered = results.map((result) => stringOf(result["tool_use_id"]));
    if (open.toSorted().join() !== answered.toSorted().join()) {
      throw invalid(
        `${at}: \`tool_use\` ids and \`tool_result\` blocks do not match: ${open.join()}`,
      );
    }
    if (results.some((result, place) => blocks[place] !== result)) {
      throw invalid(`${at}: tool_result blocks must come first`);
    }
    const calls = blocks.filter(({ type }) => type === "tool_use");
    open = calls.map(({ id }) => stringOf(id));
    calls.forEach(({ id, name }) => names.set(stringOf(id), stringOf(name)));
    const said = typeof content === "string" ? content : blocks.filter((block) => isText(block));
    const text = textOf(said, at);
    const turn: Turn = {
      ...nothing,
      role: role === "assistant" ? "assistant" : "user",
      text,
      attachments: blocks.flatMap(({ type }) => (isFile(type) ? [fileOf(type)] : [])),
      toolCalls: calls.map(({ name, input }) => ({
        name: stringOf(name),
        input: JSON.stringify(input),
      })),
    };
    const told = results.map((result): Turn => ({
      ...nothing,
      role: "tool",
      name: names.get(stringOf(result["tool_use_id"])),
      text: textOf(listOf(result["content"]).filter(isText), at),
    }));
    const isOnlyResults = told.length > 0 && text === "" && turn.attachments.length === 0;
    return isOnlyResults ? told : [...told, turn];
  });
  if (open.length > 0) throw invalid(`messages: no \`tool_result\` for ${open.join()}`);
  return turns;
}

const nothing = { text: "", name: undefined, attachments: [], toolCalls: [] } as const;

function isText(block: unknown): boolean {
  return recordOf(block)["type"] === "text";
}

function isFile(type: unknown): boolean {
  return type === "image" || type === "document";
}

function fileOf(type: unknown): Turn["attachments"][number] {
  const kind = type === "image" ? "image" : "file";
  return { kind, mediaType: undefined, sizeBytes: undefined, name: undefined };
}

function textOf(content: unknown, at: string): string {
  if (typeof content === "string") return content;
  const texts = listOf(content).map((block) => stringOf(recordOf(block)["text"]));
  if (texts.some((text) => text.trim() === "")) {
    throw invalid(`${at}: text content blocks must contain non-whitespace text`);
  }
  return texts.join("\n");
}

function readTool(tool: unknown): Tool {
  const { name, description, input_schema: schema } = recordOf(tool);
  if (!/^[a-zA-Z0-9_-]{1,128}$/.test(stringOf(name))) throw invalid("tools: invalid name");
  if (recordOf(schema)["type"] !== "object") throw invalid("tools: input_schema must be an object");
  return {
    kind: "function",
    name: stringOf(name),
    description: stringOf(description),
    schema: recordOf(schema),
  };
}

function readChoice(body: JsonRecord, isThinking: boolean): ToolUse {
  const { type, name, disable_parallel_tool_use: isSingle } = recordOf(body["tool_choice"]);
  const isParallel = isSingle !== true;
  const isForced = type === "any" || type === "tool";
  if (isForced && isThinking) {
    throw invalid("Thinking may not be enabled when tool_choice forces tool use.");
  }
  const only = type === "tool" ? [stringOf(name)] : undefined;
  return { mode: isForced ? "required" : type === "none" ? "none" : "auto", only, isParallel };
}

function readFormat({ type, schema }: JsonRecord, turns: readonly Turn[]): Prompt["output"] {
  return type === "json_schema"
    ? { kind: "schema", schema: recordOf(schema) }
    : promptedForm(turns);
}
