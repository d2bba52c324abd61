import {
  type Conversation,
  fieldOf,
  flatNameOf,
  type CacheMark,
  type Tool,
  type ToolKind,
} from "../../../domain/chat/conversation.ts";
import type { JsonObject } from "../../../domain/json-fields.ts";
import { textToolField } from "../answers/answer-context.ts";
import { invalidRequest } from "../../../domain/errors/upstream-failure.ts";

/** A tool that the model may call. */
export interface Offer {
  readonly kind: ToolKind;
  /** The caller's, with its group. */
  readonly name: string;
  readonly description: string | undefined;
  /** The schema of an object. */
  readonly schema: JsonObject;
  readonly isStrict: boolean;
  readonly cacheMark?: CacheMark | undefined;
  /** The caller's other fields. */
  readonly extra?: JsonObject | undefined;
}

export type Choice =
  { readonly type: "none" | "auto" | "any" } | { readonly type: "named"; readonly name: string };

export interface Offers {
  readonly list: readonly Offer[];
  readonly choice: Choice;
  /** The caller's fields, for refusals. */
  readonly field: string;
  readonly choiceField: string;
  /** The caller uses the deprecated `functions` of chat. */
  readonly isOld: boolean;
}

/** The caller's tools. */
export function readOffers(request: Conversation): Offers {
  const { tools } = request;
  const isOld = usesFunctions(request);
  if (isOld && tools.some((tool) => tool.isOld !== true)) {
    throw invalidRequest("functions", "Send either tools or the deprecated functions, not both.");
  }
  const field = isOld ? "functions" : fieldOf(request, "tools");
  const choiceField = isOld ? "function_call" : fieldOf(request, "toolChoice");
  const list = tools.map(offerOf);
  checkNames(list, field);
  const base = { field, choiceField, isOld };
  const choice = request.toolChoice ?? { mode: "auto" };
  switch (choice.mode) {
    case "required":
      return { ...base, list, choice: { type: "any" } };
    case "auto":
    case "none":
      return { ...base, list, choice: { type: choice.mode } };
    case "named":
      return { ...base, list, choice: namedChoice(choice.name, request, base) };
    case "allowed": {
      const type = choice.isRequired ? "any" : "auto";
      const names = new Set(choice.tools.map(({ name }) => offeredName(name, tools)));
      return { ...base, list: keepAllowed(list, names, choiceField), choice: { type } };
    }
  }
}

/** Whether a call is answered in the deprecated form. */
export function usesFunctions({ tools }: Conversation): boolean {
  return tools.some((tool) => tool.isOld === true);
}

/** Whether the caller lets the model call any tool. */
export function mayCallTools(request: Conversation): boolean {
  const { list, choice } = readOffers(request);
  return list.length > 0 && choice.type !== "none";
}

function offerOf(tool: Tool): Offer {
  if (tool.kind === "custom") return customOffer(tool);
  const { description, parameters, strict, cacheMark, extra } = tool;
  return {
    kind: "function",
    name: flatNameOf(tool),
    description,
    // The dialect has made every schema one of an object.
    schema: parameters ?? { type: "object", properties: {} },
    isStrict: strict === true,
    cacheMark,
    extra,
  };
}

/** The provider has no free-text tools: such a tool takes an object with one text in it. */
function customOffer(tool: Tool): Offer {
  const { description = "", grammar, cacheMark } = tool;
  const rule =
    grammar === undefined
      ? ""
      : `The ${textToolField} must match this ${grammar.syntax} grammar:\n${grammar.definition}`;
  return {
    kind: "custom",
    name: flatNameOf(tool),
    description: [description, rule].filter((text) => text !== "").join("\n\n"),
    schema: {
      type: "object",
      properties: { [textToolField]: { type: "string" } },
      required: [textToolField],
    },
    isStrict: false,
    cacheMark,
  };
}

function checkNames(list: readonly Offer[], field: string): void {
  const names = new Set<string>();
  for (const { name } of list) {
    if (names.has(name)) throw invalidRequest(field, `Two ${field} are named '${name}'.`);
    names.add(name);
  }
}

function namedChoice(
  name: string,
  { tools }: Conversation,
  { field, choiceField }: Pick<Offers, "field" | "choiceField">,
): Choice {
  // Without any tools, a choice among them has no effect.
  if (tools.length === 0) return { type: "auto" };
  const offered = offeredName(name, tools);
  if (offered !== undefined) return { type: "named", name: offered };
  throw invalidRequest(
    choiceField,
    `The choice '${name.slice(0, 64)}' is not among the ${field} of the request.`,
  );
}

/** A choice may leave out the group of a tool. */
function offeredName(name: string, tools: readonly Tool[]): string | undefined {
  const tool =
    tools.find((each) => flatNameOf(each) === name) ?? tools.find((each) => each.name === name);
  return tool && flatNameOf(tool);
}

function keepAllowed(
  list: readonly Offer[],
  names: ReadonlySet<string | undefined>,
  choiceField: string,
): readonly Offer[] {
  const kept = list.filter(({ name }) => names.has(name));
  if (kept.length > 0 || list.length === 0) return kept;
  throw invalidRequest(choiceField, "None of the allowed tools is among the tools.");
}
