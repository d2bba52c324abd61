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
