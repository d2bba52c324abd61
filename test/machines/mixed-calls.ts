import { embed, type MakeCall, newMark } from "./stack-load.ts";

/** A model for embeddings and one for chat, behind one simulated upstream. */
export function twoModels(upstream: string): string {
  return `
upstreams:
  simulator: ${upstream}
models:
  embed-text-v2:
    kind: embedding
    context_window: 8192
    targets: [{ upstream: simulator, model: simulated-embedding }]
  chat-model:
    kind: chat
    context_window: 200000
    targets: [{ upstream: simulator, model: simulated-chat }]
`;
}

/** Every second call is a stream of this many tokens. */
export function mixedCalls(tokens: number): MakeCall {
  let turn = 0;
  return (url, key) =>
    (turn += 1) % 2 === 0 ? streamChat(url, key, tokens) : embed(url, key, false);
}

/** One streamed answer. Its status is 0 if it is not whole. */
export async function streamChat(url: string, key: string, tokens: number) {
  const { status, requestId, rest } = await beginStream(url, key, tokens);
  const text = await rest;
  if (status === 200 && !text.endsWith("data: [DONE]\n\n")) {
    return { status: 0, requestId, failure: `cut: ${text.slice(-300)}` };
  }
  return { status, requestId, ...(status !== 200 && { failure: text }) };
}

/** Resolves with its head; `rest` is all of its text. */
export async function beginStream(url: string, key: string, tokens: number, signal?: AbortSignal) {
  const messages = [
    { role: "system", content: `mark:${newMark()}` },
    { role: "user", content: `count: ${tokens}` },
  ];
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    ...(signal !== undefined && { signal }),
    // A proxy that is told to read its file again closes connections that wait for a next request.
    keepalive: false,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "chat-model", messages, stream: true }),
  });
  const requestId = response.headers.get("x-request-id") ?? "";
  return { status: response.status, requestId, rest: response.text() };
}
