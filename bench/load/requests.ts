import { benchModels, embeddingsShape } from "../models.ts";
import type { StreamLoad } from "../plan.ts";

/** The request that a caller repeats. */
export interface LoadRequest {
  readonly path: string;
  readonly body: string;
}

const messages = [
  { role: "system", content: "You are terse and exact." },
  { role: "user", content: "What does a gateway do for those who call, and for those who answer?" },
];

export const chatPath = "/v1/chat/completions";

export function chatRequest(model: string = benchModels.chat): LoadRequest {
  const body = { model, messages, temperature: 0.2, max_tokens: 200 };
  return { path: chatPath, body: JSON.stringify(body) };
}

/** The plain chat call, in the other dialects. */
export function responsesRequest(model: string = benchModels.chat): LoadRequest {
  const body = { model, input: messages, temperature: 0.2, max_output_tokens: 200, store: false };
  return { path: "/v1/responses", body: JSON.stringify(body) };
}

export function messagesRequest(model: string = benchModels.chat): LoadRequest {
  const [instruction, ...rest] = messages;
  const system = instruction?.content;
  const body = { model, system, messages: rest, temperature: 0.2, max_tokens: 200 };
  return { path: "/v1/messages", body: JSON.stringify(body) };
}

/** An agent's turn: tools of 8 kB in all, of which the answer calls one. */
export function toolsRequest(model: string = benchModels.chat): LoadRequest {
  const body = { model, messages, tools: Array.from({ length: 12 }, (_, index) => tool(index)) };
  return { path: chatPath, body: JSON.stringify(body) };
}

function tool(index: number): object {
  const text = (description: string): object => ({ type: "string", description });
  return {
    type: "function",
    function: {
      name: `search_library_${index}`,
      description: "Finds the entries of a library that match all of the given conditions.",
      parameters: {
        type: "object",
        properties: {
          query: text("Words that the entry contains, in any order."),
          language: text("The language of the entry, as two letters."),
          kinds: { type: "array", items: { type: "string", enum: ["book", "map", "record"] } },
          published: {
            type: "object",
            properties: { after: text("A year."), before: text("One.") },
          },
          limit: { type: "integer", minimum: 1, maximum: 100 },
        },
        required: ["query"],
      },
    },
  };
}

/** Asks the static upstream for chunks at a steady pace, as text that any wire can contain. */
export function streamRequest(
  { chunks, pauseMs }: Omit<StreamLoad, "streams">,
  model: string = benchModels.chat,
): LoadRequest {
  const pace = { role: "user", content: `chunks=${chunks},pauseMs=${pauseMs}` };
  const body = { model, messages: [...messages, pace], stream: true };
  return { path: chatPath, body: JSON.stringify(body) };
}

export function embeddingsRequest(): LoadRequest {
  const input = Array.from({ length: embeddingsShape.inputs }, (_, index) => `text ${index}`);
  const body = { model: embeddingsShape.model, input, encoding_format: "base64" };
  return { path: "/v1/embeddings", body: JSON.stringify(body) };
}
