import {
  type AnswerFormat,
  type Conversation,
  fieldOf,
} from "../../../domain/chat/conversation.ts";
import type { JsonObject } from "../../../domain/json-fields.ts";
import { type Adjustments, isBlank } from "../adjustments.ts";
import { invalidRequest } from "../../../domain/errors/upstream-failure.ts";
import { providerSchema } from "./provider-schema.ts";
import { type Offer, readOffers } from "../tools/tool-offers.ts";

/** How the form of an answer that the caller requires is requested here. */
export type FormatPlan =
  | { readonly kind: "free" }
  | FieldFormat
  /** A tool whose input is the answer. The model must call it, or one of the caller's tools. */
  | { readonly kind: "tool"; readonly offer: Offer }
  | { readonly kind: "instruction"; readonly text: string };

/** The provider enforces the schema. */
export interface FieldFormat {
  readonly kind: "field";
  readonly name: string;
  readonly description: string | undefined;
  readonly schema: JsonObject;
}

/** What a form of answers depends on. */
export interface FormatModel {
  readonly capabilities: {
    readonly tools: boolean;
    readonly toolChoice: boolean;
    readonly jsonSchema: boolean;
  };
  /** Whether answers are checked, which makes a schema in words binding. */
  readonly settings: { readonly validateAnswers?: boolean };
}

type Schema = Extract<AnswerFormat, { readonly type: "schema" }>;

export function planAnswerFormat(
  request: Conversation,
  model: FormatModel,
  adjustments: Adjustments,
): FormatPlan {
  const { format } = request;
  // The provider has no mode for JSON: without a schema there is nothing to enforce.
  if (format?.type === "json") return { kind: "instruction", text: jsonInstruction };
  if (format?.type !== "schema") return free;
  const planned = planSchema(format, request, model);
  if (planned !== undefined) return planned;
  const inWords: FormatPlan = { kind: "instruction", text: schemaInstruction(schemaOf(format)) };
  // The answer is still checked: one that violates the schema is refused.
  if (model.settings.validateAnswers === true) return inWords;
  const advice =
    request.wire === "messages"
      ? "Describe the schema in the messages."
      : `Use ${fieldOf(request, "format")} json_object, and describe the schema in the messages.`;
  adjustments.dropOrRefuse(
    fieldOf(request, "format"),
    `This model does not support JSON schemas. ${advice}`,
    "instruction",
  );
  return inWords;
}

/** Undefined where the model cannot enforce the schema. */
function planSchema(
  format: Schema,
  request: Conversation,
  { capabilities }: FormatModel,
): FormatPlan | undefined {
  const { name = "answer" } = format;
  const schema = schemaOf(format);
  const description = descriptionOf(format);
  const canForce = capabilities.tools && capabilities.toolChoice;
  const held = capabilities.jsonSchema ? providerSchema(schema) : undefined;
  // If no tool can replace it, the provider's refusal explains what it does not accept.
  if (held !== undefined || (capabilities.jsonSchema && !canForce)) {
    return { kind: "field", name, description, schema: held ?? schema };
  }
  if (canForce) {
    const { list, choice } = readOffers(request);
    // An answer that must be a call of the caller's tools has no text.
    if (list.length > 0 && (choice.type === "any" || choice.type === "named")) return free;
    const beside = choice.type === "none" ? [] : list;
    const param = fieldOf(request, "format");
    return { kind: "tool", offer: answerOffer({ name, schema, description, param }, beside) };
  }
  return undefined;
}

function schemaOf({ schema }: Schema): JsonObject {
  return schema ?? { type: "object" };
}

const free: FormatPlan = { kind: "free" };

interface Wanted {
  readonly name: string;
  readonly schema: JsonObject;
  readonly description: string | undefined;
  /** The caller's field. */
  readonly param: string;
}

function answerOffer(
  { name, schema, description, param }: Wanted,
  beside: readonly Offer[],
): Offer {
  if (schema["type"] !== undefined && schema["type"] !== "object") {
    throw invalidRequest(
      param,
      "The JSON schema of an answer must describe an object. Put other values into a field of one.",
    );
  }
  const use =
    beside.length === 0
      ? "Takes the answer. Call it once, with the whole answer."
      : "Takes the final answer. Call it once, alone and with the whole answer, when no other " +
        "tool is needed.";
  return {
    kind: "function",
    name: nameBeside(name, beside),
    description: [description, ...(description === undefined || beside.length > 0 ? [use] : [])]
      .filter((text) => text !== undefined)
      .join("\n\n"),
    // A reference alone has no type, and a tool's input must have one.
    schema: { type: "object", ...schema },
    isStrict: false,
  };
}

/** The caller may have a tool of the same name. */
function nameBeside(name: string, beside: readonly Offer[]): string {
  const taken = new Set(beside.map((offer) => offer.name));
  let free = name;
  while (taken.has(free)) free += "_answer";
  return free;
}

function descriptionOf({ description = "" }: Schema): string | undefined {
  return isBlank(description) ? undefined : description;
}

const jsonInstruction =
  "Answer with one JSON object and nothing else: no words around it and no code fence.";

function schemaInstruction(schema: JsonObject): string {
  return `${jsonInstruction} The object must match this JSON schema: ${JSON.stringify(schema)}`;
}
