import type { Tool, ToolUse } from "../answer/prompt.ts";
import { isRecord, listOf, recordOf, stringOf, type JsonRecord } from "../read-json.ts";
import { invalidRequest } from "./wire-error.ts";

export interface OfferedTools {
  readonly tools: readonly Tool[];
  readonly toolUse: ToolUse;
  /** Whether the request has `functions`, which are answered with `function_call`. */
  readonly isLegacy: boolean;
}

/** Tools and the choice among them. Throws `WireError` if OpenAI would refuse them. */
export function readTools(body: JsonRecord): OfferedTools {
  const modern = listOf(body["tools"]).map((tool, index) => readTool(tool, index));
  const legacy = listOf(body["functions"]).map((tool) => readFunction(recordOf(tool)));
  const isLegacy = modern.length === 0 && legacy.length > 0;
  const tools = isLegacy ? legacy : modern;
  const choice = isLegacy ? legacyChoice(body["function_call"]) : body["tool_choice"];
  if (choice !== undefined && choice !== null && tools.length === 0) {
    const message =
      "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
    throw invalidRequest(message, "tool_choice", null);
  }
  const isParallel = !isLegacy && body["parallel_tool_calls"] !== false;
  const toolUse = { ...readChoice(choice, isParallel) };
  const missing = toolUse.only?.find((name) => !tools.some((tool) => tool.name === name));
  if (missing !== undefined) {
    const message = `Invalid value for 'tool_choice': no tool named '${missing}' was specified.`;
    throw invalidRequest(message, "tool_choice", null);
  }
  return { tools, toolUse, isLegacy };
}

function readTool(tool: unknown, index: number): Tool {
  const { type, function: called, custom } = recordOf(tool);
  if (type === "function" && isRecord(called)) return readFunction(called);
  if (type === "custom" && isRecord(custom)) return readCustom(custom);
  const message = `Invalid value: '${stringOf(type)}'. Supported values are: 'function' and 'custom'.`;
  throw invalidRequest(message, `tools[${index}].type`, "invalid_value");
}

function readFunction({ name, description, parameters }: JsonRecord): Tool {
  return {
    kind: "function",
    name: stringOf(name),
    description: stringOf(description),
    schema: isRecord(parameters) ? parameters : { type: "object" },
  };
}

function readCustom({ name, description, format }: JsonRecord): Tool {
  const grammar = recordOf(recordOf(format)["grammar"]);
  const isPattern = grammar["syntax"] === "regex";
  const pattern = isPattern ? `^(?:${stringOf(grammar["definition"])})$` : undefined;
  return { kind: "text", name: stringOf(name), description: stringOf(description), pattern };
}

function legacyChoice(choice: unknown): unknown {
  return isRecord(choice) ? { type: "function", function: choice } : choice;
}

function readChoice(choice: unknown, isParallel: boolean): ToolUse {
  if (choice === "none" || choice === "required") {
    return { mode: choice, only: undefined, isParallel };
  }
  const { type, function: called, custom, allowed_tools: allowed } = recordOf(choice);
  if (type === "allowed_tools") {
    const { mode, tools } = recordOf(allowed);
    const only = listOf(tools).map((tool) => toolName(recordOf(tool)));
    return { mode: mode === "required" ? "required" : "auto", only, isParallel };
  }
  if (called === undefined && custom === undefined) {
    return { mode: "auto", only: undefined, isParallel };
  }
  const name = stringOf(recordOf(called ?? custom)["name"]);
  return { mode: "required", only: [name], isParallel };
}

function toolName(tool: JsonRecord): string {
  return stringOf(recordOf(tool["function"] ?? tool["custom"])["name"] ?? tool["name"]);
}
