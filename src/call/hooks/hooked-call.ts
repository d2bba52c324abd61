import type { ChatEvent, ChatRequest, ChatResult } from "../../domain/chat/chat.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../../domain/chat/embedding.ts";
import type { Call } from "../../snapshot/call.ts";
import type { RunningHooks } from "../../snapshot/call-hooks.ts";

/** A request and the size of its JSON, for the input estimate. */
export interface SizedRequest<Request> {
  readonly request: Request;
  readonly bodyBytes: number;
}

type Hooked = Pick<Call, "hooks">;

/** The chat request after the hooks. */
export async function chatRequestOf<Asked extends SizedRequest<ChatRequest>>(
  { hooks }: Hooked,
  asked: Asked,
): Promise<Asked> {
  const read = await hooks?.requestRead({ kind: "chat", request: asked.request });
  return read?.kind === "chat" ? sized(asked, read.request) : asked;
}

/** The embeddings request after the hooks. */
export async function embeddingRequestOf<Asked extends SizedRequest<EmbeddingRequest>>(
  { hooks }: Hooked,
  asked: Asked,
): Promise<Asked> {
  const read = await hooks?.requestRead({ kind: "embedding", request: asked.request });
  return read?.kind === "embedding" ? sized(asked, read.request) : asked;
}

function sized<Request, Asked extends SizedRequest<Request>>(asked: Asked, request: Request) {
  if (request === asked.request) return asked;
  return { ...asked, request, bodyBytes: Buffer.byteLength(JSON.stringify(request)) };
}

/** The chat answer after the hooks. */
export async function chatAnswerOf(hooks: RunningHooks, answer: ChatResult): Promise<ChatResult> {
  const part = await hooks.answering({ kind: "chat", answer });
  return part.kind === "chat" ? part.answer : answer;
}

/** The vectors after the hooks. */
export async function embeddingAnswerOf(
  hooks: RunningHooks,
  answer: EmbeddingResult,
): Promise<EmbeddingResult> {
  const part = await hooks.answering({ kind: "embedding", answer });
  return part.kind === "embedding" ? part.answer : answer;
}

/** The events after the hooks. */
export async function eventsOf(
  hooks: RunningHooks,
  events: readonly ChatEvent[],
): Promise<readonly ChatEvent[]> {
  const part = await hooks.answering({ kind: "events", events });
  return part.kind === "events" ? part.events : events;
}
