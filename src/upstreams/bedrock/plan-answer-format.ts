import type { ChatRequest } from "../../domain/chat.ts";
import { objectOf, textOf, type JsonObject } from "../shared/json-fields.ts";
import type { Adjustments } from "./adjustments.ts";
import type { BedrockModel } from "./bedrock-model.ts";
import { isBlank } from "./blank-text.ts";
import { closeSchema } from "./close-schema.ts";
import type { TextFormat } from "./converse-body.ts";
import { invalidRequest } from "./refusal.ts";
import { mayCallTools, type Offer } from "./tool-offers.ts";

/** How the form of an answer that the caller asked for is asked for here. */
export type AnswerFormat =
  | { readonly kind: "free" }
  | { readonly kind: "field"; readonly textFormat: TextFormat }
  /** A tool that the model must call; its input is the answer. */
  | { readonly kind: "tool"; readonly offer: Offer }
  | { readonly kind: "instruction"; readonly text: string };

type Schema = Extract<ChatRequest["response_format"], { readonly type: "json_schema" }>;

export function planAnswerFormat(
  request: ChatRequest,
  model: BedrockModel,
  adjustments: Adjustments,
): AnswerFormat {
  const format = request.response_format ?? undefined;
  if (format === undefined || format.type === "text") return { kind: "free" };
  // The provider knows no such mode: without a schema there is nothing to hold the model to.
  if (format.type === "json_object") return { kind: "instruction", text: jsonInstruction };
  const planned = planSchema(format, request, model);
  if (planned !== undefined) return planned;
  adjustments.dropOrRefuse(
    "response_format",
    model.capabilities.toolChoice
      ? "This model cannot answer by a JSON schema and call tools in one request. Remove tools " +
          "or response_format."
      : "This model cannot be held to a JSON schema. Use response_format json_object, and " +
          "describe the schema in the messages.",
    "instruction",
  );
  return { kind: "instruction", text: schemaInstruction(schemaOf(format)) };
}

/** Undefined where the model cannot be held to the schema. */
function planSchema(
  format: Schema,
  request: ChatRequest,
  { capabilities }: BedrockModel,
): AnswerFormat | undefined {
  const { json_schema: wanted } = format;
  const schema = schemaOf(format);
  const description = descriptionOf(wanted);
  if (capabilities.jsonSchema) {
    // Only closed objects are taken; `strict` schemas are closed by OpenAI's own rules.
    const closed = wanted.strict === true ? schema : closeSchema(schema);
    const jsonSchema = {
      schema: JSON.stringify(closed),
      name: wanted.name,
      ...(description !== undefined && { description }),
    };
    return { kind: "field", textFormat: { type: "json_schema", structure: { jsonSchema } } };
  }
  if (capabilities.tools && capabilities.toolChoice && !mayCallTools(request)) {
    return { kind: "tool", offer: answerOffer(wanted.name, schema, description) };
  }
  return undefined;
}

function schemaOf({ json_schema: { schema } }: Schema): JsonObject {
  return schema ?? { type: "object" };
}

function answerOffer(name: string, schema: JsonObject, description: string | undefined): Offer {
  if (schema["type"] !== undefined && schema["type"] !== "object") {
    throw invalidRequest(
      "response_format",
      "The JSON schema of an answer must describe an object. Put other values into a field of one.",
    );
  }
  return {
    kind: "function",
    name,
    description: description ?? "Takes the answer. Call it once, with the whole answer.",
    schema,
    isStrict: false,
  };
}

function descriptionOf(wanted: Schema["json_schema"]): string | undefined {
  const description = textOf(objectOf(wanted)?.["description"]) ?? "";
  return isBlank(description) ? undefined : description;
}

const jsonInstruction =
  "Answer with one JSON object and nothing else: no words around it and no code fence.";

function schemaInstruction(schema: JsonObject): string {
  return `${jsonInstruction} The object must match this JSON schema: ${JSON.stringify(schema)}`;
}
