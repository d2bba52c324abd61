import type { JsonObject } from "../../src/domain/json-fields.ts";

export type Dialect = "chat" | "responses" | "messages";

/** What a caller sends over the smallest body of its wire, and what is in the upstream's body. */
export type Case = readonly [dialect: Dialect, sent: JsonObject, upstream: Expected];

export type Cells = Readonly<Record<string, readonly [fate: string, ...cases: readonly Case[]]>>;

type Expected = JsonObject & {
  /** Of `x-sluice-adjusted-parameters`. */
  readonly notices?: Readonly<Record<string, string | number>>;
  /** The field that a refusal names. */
  readonly refused?: string;
  /** Fields of `forward_fields`. */
  readonly forwarded?: readonly string[];
  /** Paths that are not in the body. */
  readonly without?: readonly string[];
};

/** The message of the smallest body. */
export const hi = { role: "user", content: "hi" };
export const chat = (...messages: readonly object[]) => ({ messages: [hi, ...messages] });
export const items = (...input: readonly object[]) => ({ input: [hi, ...input] });
export const turns = (...messages: readonly object[]) => ({ messages: [hi, ...messages] });
/** The same in the upstream's body. */
export const asked = chat;
export const user = (...content: readonly object[]) => ({ role: "user", content });
export const assistant = (...content: readonly object[]) => ({ role: "assistant", content });

export const png = "data:image/png;base64,iVBORw0KGgo=";
export const pdf = "data:application/pdf;base64,JVBERi0=";
export const imagePart = { type: "image_url", image_url: { url: png } };
export const address = "https://example.com/a.png";
export const far = { type: "image_url", image_url: { url: address } };
export const pngSource = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };
export const pdfSource = { type: "base64", media_type: "application/pdf", data: "JVBERi0=" };
export const pngBlock = { type: "image", source: pngSource };
export const pdfBlock = { type: "document", source: pdfSource };
export const pdfPart = { type: "file", file: { filename: "document", file_data: pdf } };
export const text = (said: string) => ({ type: "text", text: said });

export const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
export const calling = { role: "assistant", content: null, tool_calls: [call] };
export const callItem = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
export const toolUse = { type: "tool_use", id: "c", name: "f", input: {} };
export const toolResult = { type: "tool_result", tool_use_id: "c", content: "done" };
export const result = { role: "tool", tool_call_id: "c", content: "done" };

/** The result of a call that was an image, and the image. */
export const movedImage = [
  { ...result, content: "[This image follows the tool results as tool image 1.]" },
  user(text("[tool image 1:]"), imagePart),
] as const;

const signature = { google: { thought_signature: "Z29vZ2xl" } };
export const signedCalling = { ...calling, tool_calls: [{ ...call, extra_content: signature }] };
export const callThought = JSON.stringify({ call: "c", extra_content: signature });

export const schema = { type: "object", properties: {} };
export const tool = { type: "function", function: { name: "f", parameters: schema } };
export const flatTool = { type: "function", name: "f", parameters: schema };
export const ownTool = { name: "f", input_schema: schema };
export const grammar = { syntax: "regex", definition: "a+" };
export const custom = {
  type: "custom",
  custom: { name: "f", format: { type: "grammar", grammar } },
};
export const ephemeral = { cache_control: { type: "ephemeral" } };
export const explicit = { prompt_cache_breakpoint: { mode: "explicit" } };
