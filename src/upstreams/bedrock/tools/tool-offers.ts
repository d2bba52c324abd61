import type {
  Conversation,
  ChatTool,
  FunctionDefinition,
} from "../../../domain/chat/conversation.ts";
import { type JsonObject, objectOf, textOf } from "../../../domain/json-fields.ts";
import { textToolField } from "../encode/answer-context.ts";
import { invalidRequest } from "../encode/adjustments.ts";

/** A tool that the model may call, from any field of the request. */
export interface Offer {
  readonly kind: "function" | "custom";
  /** As the caller wrote it. */
  readonly name: string;
  readonly description: string | undefined;
  /** The schema of an object. */
  readonly schema: JsonObject;
  readonly isStrict: boolean;
  /** The tool as the caller sent it, which may have a cache point. */
  readonly sent: object;
}

export type Choice =
  { readonly type: "none" | "auto" | "any" } | { readonly type: "named"; readonly name: string };

export interface Offers {
  readonly list: readonly Offer[];
  readonly choice: Choice;
  /** The caller's fields, for refusals. */
  readonly field: "tools" | "functions";
  readonly choiceField: "tool_choice" | "function_call";
}

/** The caller's tools, in today's fields or the deprecated ones. */
export function readOffers(request: Conversation): Offers {
  const tools = request.tools ?? [];
  const functions = request.functions ?? [];
  if (tools.length > 0 && functions.length > 0) {
    throw invalidRequest("functions", "Send either tools or the deprecated functions, not both.");
  }
  return functions.length > 0 ? readFunctions(request, functions) : readTools(request, tools);
}

/** Whether the caller lets the model call any tool. */
export function mayCallTools(request: Conversation): boolean {
  const { list, choice } = readOffers(request);
  return list.length > 0 && choice.type !== "none";
}

function readTools(request: Conversation, tools: readonly ChatTool[]): Offers {
  const names = { field: "tools", choiceField: "tool_choice" } as const;
  const list = tools.map((tool) => {
    const offer = tool.type === "custom" ? customOffer(tool.custom) : functionOffer(tool.function);
    return { ...offer, sent: { ...offer.sent, ...tool } };
  });
  checkNames(list, names.field);
  const choice = request.tool_choice ?? "auto";
  if (choice === "required") return { ...names, list, choice: { type: "any" } };
  if (typeof choice === "string") return { ...names, list, choice: { type: choice } };
  switch (choice.type) {
    case "function":
      return { ...names, list, choice: namedChoice(choice.function.name, list, names) };
    case "custom":
      return { ...names, list, choice: namedChoice(choice.custom.name, list, names) };
    case "allowed_tools": {
      const { mode, tools: allowed } = choice.allowed_tools;
      const type = mode === "required" ? "any" : "auto";
      return { ...names, list: keepAllowed(list, allowed), choice: { type } };
    }
  }
}

function readFunctions(request: Conversation, functions: readonly FunctionDefinition[]): Offers {
  const names = { field: "functions", choiceField: "function_call" } as const;
  const list = functions.map(functionOffer);
  checkNames(list, names.field);
  const choice = request.function_call ?? "auto";
  if (typeof choice === "string") return { ...names, list, choice: { type: choice } };
  return { ...names, list, choice: namedChoice(choice.name, list, names) };
}

function functionOffer(definition: FunctionDefinition): Offer {
  const { name, description, parameters, strict } = definition;
  return {
    kind: "function",
    name,
    description: description ?? undefined,
    // The dialect has made every schema one of an object.
    schema: parameters ?? { type: "object", properties: {} },
    isStrict: strict === true,
    sent: definition,
  };
}

/** The provider has no free-text tools: such a tool takes an object with one text in it. */
function customOffer(custom: { readonly name: string }): Offer {
  const fields: JsonObject = { ...custom };
  const grammar = objectOf(objectOf(fields["format"])?.["grammar"]);
  const description = textOf(fields["description"]) ?? "";
  const rule =
    grammar === undefined
      ? ""
      : `The ${textToolField} must match this ${textOf(grammar["syntax"]) ?? ""} grammar:\n` +
        (textOf(grammar["definition"]) ?? "");
  return {
    kind: "custom",
    name: custom.name,
    description: [description, rule].filter((text) => text !== "").join("\n\n"),
    schema: {
      type: "object",
      properties: { [textToolField]: { type: "string" } },
      required: [textToolField],
    },
    isStrict: false,
    sent: custom,
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
  list: readonly Offer[],
  { field, choiceField }: Pick<Offers, "field" | "choiceField">,
): Choice {
  // Without any tools, a choice among them has no effect.
  if (list.length === 0) return { type: "auto" };
  if (list.some((offer) => offer.name === name)) return { type: "named", name };
  throw invalidRequest(
    choiceField,
    `The choice '${name.slice(0, 64)}' is not among the ${field} of the request.`,
  );
}

function keepAllowed(list: readonly Offer[], allowed: unknown): readonly Offer[] {
  const names = new Set(Array.isArray(allowed) ? allowed.map(nameOfAllowed) : []);
  const kept = list.filter(({ name }) => names.has(name));
  if (kept.length > 0 || list.length === 0) return kept;
  throw invalidRequest("tool_choice", "None of the allowed tools is among the tools.");
}

/** Entries have the format of the tools themselves, or have the name at the top level. */
function nameOfAllowed(entry: unknown): string | undefined {
  const fields = objectOf(entry);
  const inner = objectOf(fields?.["function"]) ?? objectOf(fields?.["custom"]) ?? fields;
  return textOf(inner?.["name"]);
}
