import { reasonsByDefault } from "../../answer/model-name.ts";
import type { OutputForm, Prompt, Tool, ToolUse, Turn } from "../../answer/prompt.ts";
import { promptedForm } from "../../answer/schema/prompted-form.ts";
import { isRecord, listOf, numberOf, parseJson, recordOf, stringOf } from "../../read-json.ts";
import type { JsonRecord } from "../../read-json.ts";
import type { CapabilityRow } from "../account/capability-row.ts";
import { isThinking } from "../checks/check-reasoning.ts";
import { readTurns } from "./read-turns.ts";

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
