import { benchModels, embeddingsShape } from "../models.ts";
import type { StreamLoad } from "../plan.ts";

/** What a caller sends, again and again. */
export interface LoadRequest {
  readonly path: string;
  readonly body: string;
}

const messages = [
  { role: "system", content: "You are terse and exact." },
  { role: "user", content: "What does a gateway do for those who call, and for those who answer?" },
];

export function chatRequest(): LoadRequest {
  const body = { model: benchModels.chat, messages, temperature: 0.2, max_tokens: 200 };
  return { path: "/v1/chat/completions", body: JSON.stringify(body) };
}

/** Asks the static upstream, in a field that gateways pass on, for chunks at a steady pace. */
export function streamRequest({ chunks, pauseMs }: Omit<StreamLoad, "streams">): LoadRequest {
  const body = {
    model: benchModels.chat,
    messages,
    stream: true,
    user: `chunks=${chunks},pauseMs=${pauseMs}`,
  };
  return { path: "/v1/chat/completions", body: JSON.stringify(body) };
}

export function embeddingsRequest(): LoadRequest {
  const input = Array.from({ length: embeddingsShape.inputs }, (_, index) => `text ${index}`);
  const body = { model: embeddingsShape.model, input, encoding_format: "base64" };
  return { path: "/v1/embeddings", body: JSON.stringify(body) };
}
