import {
  type Attachment,
  type OutputForm,
  type Prompt,
  reasonsByDefault,
  type Tool,
  type ToolUse,
  type Turn,
} from "../answer/prompt.ts";
import { promptedForm } from "../answer/prompted-form.ts";
import {
  isRecord,
  type JsonRecord,
  listOf,
  numberOf,
  parseJson,
  recordOf,
  stringOf,
} from "../json.ts";
import type { CapabilityRow } from "./capabilities.ts";
import { isThinking } from "./reasoning.ts";

/** Converts a checked body to a prompt; equal prompts get equal answers on both wires. */
export function readPrompt(body: JsonRecord, model: string, row: CapabilityRow): Prompt {
  const { maxTokens, stopSequences } = recordOf(body["inferenceConfig"]);
  const fields = recordOf(body["additionalModelRequestFields"]);
  const turns = readTurns(body);
  return {
    model,
    turns,
    ...readTools(body, fields),
    output: readOutputForm(body, turns),
    maxTokens: numberOf(maxTokens) ?? row.defaultMaxTokens ?? row.maxOutputTokens,
    stopSequences: listOf(stopSequences).map(stringOf),
    // This wire has no seed; on OpenAI's a missing one is `null`.
    seed: "null",
    reasoningEffort:
      readReasoningEffort(body, fields, row) ?? (reasonsByDefault(model) ? "medium" : undefined),
  };
}

function readTools(body: JsonRecord, fields: JsonRecord): Pick<Prompt, "tools" | "toolUse"> {
  const { tools: offered, toolChoice } = recordOf(body["toolConfig"]);
  const tools = listOf(offered).flatMap((tool): Tool[] => {
    const spec = recordOf(tool)["toolSpec"];
    if (!isRecord(spec)) return [];
    const { name, description, inputSchema } = spec;
    const schema = recordOf(recordOf(inputSchema)["json"]);
    return [{ kind: "function", name: stringOf(name), description: stringOf(description), schema }];
  });
  return { tools, toolUse: readToolUse(recordOf(toolChoice), recordOf(fields["tool_choice"])) };
}

/** Only Claude's own `tool_choice` can limit an answer to a single call. */
function readToolUse(choice: JsonRecord, claudeChoice: JsonRecord): ToolUse {
  const isParallel = claudeChoice["disable_parallel_tool_use"] !== true;
  const named = recordOf(choice["tool"])["name"] ?? claudeChoice["name"];
  if (typeof named === "string") return { mode: "required", only: [named], isParallel };
  const isRequired = choice["any"] !== undefined || claudeChoice["type"] === "any";
  const mode = claudeChoice["type"] === "none" ? "none" : isRequired ? "required" : "auto";
  return { mode, only: undefined, isParallel };
}

/** The wire has no JSON mode: prompts ask for JSON in words. */
function readOutputForm(body: JsonRecord, turns: readonly Turn[]): OutputForm {
  const { textFormat } = recordOf(body["outputConfig"]);
  const { jsonSchema } = recordOf(recordOf(textFormat)["structure"]);
  const text = recordOf(jsonSchema)["schema"];
  if (typeof text !== "string") return promptedForm(turns);
  return { kind: "schema", schema: recordOf(parseJson(text)) };
}

function readReasoningEffort(
  body: JsonRecord,
  fields: JsonRecord,
  row: CapabilityRow,
): string | undefined {
  const own = stringOf(fields["reasoning_effort"]);
  if (own !== "") return own;
  const { type, budget_tokens: budget } = recordOf(fields["thinking"]);
  if (type === "enabled") return effortOf(numberOf(budget) ?? 0);
  if (!isThinking(body, row)) return undefined;
  const effort = recordOf(fields["output_config"])["effort"];
  return stringOf(effort ?? recordOf(body["outputConfig"])["effort"]) || "high";
}

function effortOf(budgetTokens: number): string {
  if (budgetTokens <= 1024) return "low";
  if (budgetTokens <= 4096) return "medium";
  return budgetTokens <= 16_384 ? "high" : "xhigh";
}

/** The conversation of a checked body. Tool results become turns of their own. */
function readTurns(body: JsonRecord): Turn[] {
  const system = listOf(body["system"])
    .map((block) => recordOf(block))
    .filter((block) => block["cachePoint"] === undefined)
    .map((block): Turn => plainTurn("system", textOf(block)));
  const callNames = new Map<string, string>();
  const turns = listOf(body["messages"]).flatMap((message) => {
    const { role, content } = recordOf(message);
    const blocks = listOf(content).map(recordOf);
    return role === "assistant"
      ? [readAssistant(blocks, callNames)]
      : [...readResults(blocks, callNames), ...readUser(blocks)];
  });
  return [...system, ...turns];
}

function readAssistant(blocks: readonly JsonRecord[], callNames: Map<string, string>): Turn {
  const toolCalls = blocks.flatMap(({ toolUse }) => {
    if (!isRecord(toolUse)) return [];
    const name = stringOf(toolUse["name"]);
    callNames.set(stringOf(toolUse["toolUseId"]), name);
    return [{ name, input: JSON.stringify(toolUse["input"]) }];
  });
  return { ...plainTurn("assistant", joinedText(blocks)), toolCalls };
}

function readResults(
  blocks: readonly JsonRecord[],
  callNames: ReadonlyMap<string, string>,
): Turn[] {
  return blocks.flatMap(({ toolResult }): Turn[] => {
    if (!isRecord(toolResult)) return [];
    const content = listOf(toolResult["content"]).map(recordOf);
    const name = callNames.get(stringOf(toolResult["toolUseId"]));
    const turn = plainTurn("tool", joinedText(content));
    return [{ ...turn, name, attachments: content.flatMap(readAttachment) }];
  });
}

/** Empty if the message has only tool results. */
function readUser(blocks: readonly JsonRecord[]): Turn[] {
  const own = blocks.filter(
    (block) => block["toolResult"] === undefined && block["cachePoint"] === undefined,
  );
  if (own.length === 0) return [];
  return [{ ...plainTurn("user", joinedText(own)), attachments: own.flatMap(readAttachment) }];
}

function plainTurn(role: Turn["role"], text: string): Turn {
  return { role, text, name: undefined, attachments: [], toolCalls: [] };
}

function joinedText(blocks: readonly JsonRecord[]): string {
  return blocks
    .map(textOf)
    .filter((text) => text !== "")
    .join("\n");
}

function textOf({ text, json }: JsonRecord): string {
  return json === undefined ? stringOf(text) : JSON.stringify(json);
}

function readAttachment({ image, document }: JsonRecord): Attachment[] {
  if (isRecord(image)) return [attachment("image", image, "image")];
  if (!isRecord(document)) return [];
  return [attachment("file", document, "application")];
}

function attachment(kind: Attachment["kind"], block: JsonRecord, type: string): Attachment {
  const { bytes } = recordOf(block["source"]);
  const format = stringOf(block["format"]);
  return {
    kind,
    mediaType: `${type}/${format}`,
    sizeBytes: typeof bytes === "string" ? Buffer.byteLength(bytes, "base64") : undefined,
    name: stringOf(block["name"]) || undefined,
  };
}
