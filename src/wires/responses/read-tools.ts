import type { AdjustedFields } from "../../domain/chat/answer.ts";
import {
  flatNameOf,
  type Tool,
  type ToolChoice,
  type ToolKind,
} from "../../domain/chat/conversation.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { flagOf, isObject, type JsonObject, objectOf, textOf } from "../../domain/json-fields.ts";
import { fieldNames, fieldsBeyond, objectsIn } from "../fields.ts";
import type { ToolItem } from "./read-items.ts";

interface OfferedTools {
  readonly tools: readonly Tool[];
  /** Undefined: nothing was dropped. */
  readonly adjusted: AdjustedFields | undefined;
}

/**
 * Reads `tools` and the tools of items. Groups become tools with the group's name. Tools that
 * OpenAI's servers run are dropped; it is refused when they are all that is offered.
 */
export function readTools(body: JsonObject, toolItems: readonly ToolItem[]): OfferedTools {
  const tools: Tool[] = [];
  const dropped = new Map<string, string>();
  let firstDropped: string | undefined;
  const read = (definitions: unknown, list: string, group: ToolGroup = {}): void => {
    objectsIn(definitions).forEach((definition, index) => {
      const at = `${list}[${index}]`;
      const type = textOf(definition["type"]) ?? "";
      if (type === "namespace") {
        const namespaceDescription = textOf(definition["description"]);
        const namespace = textOf(definition["name"]);
        read(definition["tools"], `${at}.tools`, { namespace, namespaceDescription });
      } else if (isKind(type)) {
        tools.push({ ...readTool(definition, type, at), ...group });
      } else {
        firstDropped ??= at;
        dropped.set(`tools.${hostedTypes[type] === true ? type : "unknown"}`, "dropped");
      }
    });
  };
  read(body["tools"], "tools");
  for (const { item, at } of toolItems) read(item["tools"], `${at}.tools`);
  checkFlatNames(tools);
  if (firstDropped !== undefined && tools.length === 0 && body["tool_choice"] !== "none") {
    throw hostedTool(`${firstDropped}.type`);
  }
  return { tools, adjusted: dropped.size === 0 ? undefined : dropped };
}

/** Models know tools by their flat names; of a call, the group must be clear again. */
function checkFlatNames(tools: readonly Tool[]): void {
  const known = new Map<string, Tool>();
  for (const tool of tools) {
    const flat = flatNameOf(tool);
    const other = known.get(flat) ?? tool;
    known.set(flat, other);
    if (other.name === tool.name && other.namespace === tool.namespace) continue;
    throw new GatewayError("invalid_value", {
      message:
        `Models know no groups: two tools would be '${flat.slice(0, 64)}' to them. Rename one of ` +
        "the tools or groups.",
      param: `${tool.at}.name`,
    });
  }
}

function hostedTool(param: string): GatewayError {
  return new GatewayError("unsupported_parameter", {
    message:
      "The gateway has no tools of its own, such as web search. Offer tools of type 'function' or " +
      "'custom', which the application runs.",
    param,
  });
}

function isKind(type: string): type is ToolKind {
  return type === "function" || type === "custom";
}

/** The names that a header may tell. Source: `Tool` in OpenAI's OpenAPI document. */
const hostedTypes = fieldNames(
  "apply_patch code_interpreter computer computer_use_preview file_search image_generation " +
    "local_shell mcp programmatic_tool_calling shell tool_search web_search " +
    "web_search_2025_08_26 web_search_preview web_search_preview_2025_03_11",
);

type ToolGroup = Pick<Tool, "namespace" | "namespaceDescription">;

function readTool(definition: JsonObject, kind: ToolKind, at: string): Tool {
  const format = objectOf(definition["format"]);
  return {
    kind,
    name: textOf(definition["name"]) ?? "",
    description: textOf(definition["description"]),
    parameters: objectOf(definition["parameters"]),
    strict: flagOf(definition["strict"]),
    grammar:
      format?.["type"] === "grammar"
        ? {
            syntax: textOf(format["syntax"]) ?? "",
            definition: textOf(format["definition"]) ?? "",
          }
        : undefined,
    extra: fieldsBeyond(definition, toolFields),
    at,
  };
}

const toolFields = fieldNames("type name description parameters strict format");

/** Throws 400 for a choice that only tools of OpenAI's servers fulfil. Without tools, a choice is none. */
export function readToolChoice(choice: unknown, tools: readonly Tool[]): ToolChoice | undefined {
  if (choice === "auto" || choice === "none" || choice === "required") {
    if (tools.length > 0) return { mode: choice };
    if (choice !== "required") return undefined;
    throw new GatewayError("invalid_value", {
      message: "Tool choice 'required' must be specified with 'tools' parameter.",
      param: "tool_choice",
    });
  }
  if (!isObject(choice)) return undefined;
  if (choice["type"] !== "allowed_tools") return { mode: "named", ...chosen(choice, tools) };
  const allowed = objectsIn(choice["tools"]).filter(({ type }) => isKind(textOf(type) ?? ""));
  if (allowed.length === 0) throw hostedTool("tool_choice.tools");
  return {
    mode: "allowed",
    isRequired: choice["mode"] === "required",
    tools: allowed.map((tool) => chosen(tool, tools)),
  };
}

/** The tool's name as wires without groups have it. */
function chosen(choice: JsonObject, tools: readonly Tool[]): Pick<Tool, "kind" | "name"> {
  const kind = textOf(choice["type"]) ?? "";
  if (!isKind(kind)) throw hostedTool("tool_choice.type");
  const name = textOf(choice["name"]) ?? "";
  const group = textOf(choice["namespace"]);
  const found = tools.find(
    (tool) =>
      tool.kind === kind && tool.name === name && (group === undefined || tool.namespace === group),
  );
  return { kind, name: flatNameOf(found ?? { name, namespace: group }) };
}
