import type { ChatEvent, ChatRequest, ChatResult } from "../../domain/chat/chat.ts";
import type { EmbeddingRequest, EmbeddingResult } from "../../domain/chat/embedding.ts";
import type { Call } from "../../snapshot/call.ts";
import type { AskedRequest, RunningHooks } from "../../snapshot/call-hooks.ts";
import type { Clock } from "../../domain/clock.ts";
import { abortable } from "../../domain/waiting/abortable.ts";
import { atDeadline } from "../../domain/waiting/at-deadline.ts";
import { whyEnded } from "../../domain/waiting/why-ended.ts";

/** A request and the size of its JSON, for the input estimate. */
export interface SizedRequest<Request> {
  readonly request: Request;
  readonly bodyBytes: number;
}

type ReadingCall = Pick<Call, "hooks" | "signal" | "options" | "receivedAt">;
type DeadlineClock = Pick<Clock, "schedule" | "monotonic">;

/** The chat request after the hooks. */
export async function chatRequestOf<Asked extends SizedRequest<ChatRequest>>(
  call: ReadingCall,
  asked: Asked,
  clock: DeadlineClock,
): Promise<Asked> {
  const read = await readByHooks(call, { kind: "chat", request: asked.request }, clock);
  return read?.kind === "chat" ? sized(asked, read.request) : asked;
}

/** The embeddings request after the hooks. */
export async function embeddingRequestOf<Asked extends SizedRequest<EmbeddingRequest>>(
  call: ReadingCall,
  asked: Asked,
  clock: DeadlineClock,
): Promise<Asked> {
  const read = await readByHooks(call, { kind: "embedding", request: asked.request }, clock);
  return read?.kind === "embedding" ? sized(asked, read.request) : asked;
}

/** The call is not among the running ones yet, so its deadline is watched here. */
async function readByHooks(
  call: ReadingCall,
  asked: AskedRequest,
  clock: DeadlineClock,
): Promise<AskedRequest | undefined> {
  const { hooks, signal } = call;
  if (hooks === undefined) return undefined;
  const late = new AbortController();
  const cancel = atDeadline(call, clock, (error) => late.abort(error));
  const end = AbortSignal.any([signal, late.signal]);
  return untilEnded(hooks.requestRead(asked), end).finally(cancel);
}

/** Waits for a hook as long as its call runs. */
export function untilEnded<Value>(hook: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return abortable(hook, signal).catch((error: unknown) => {
    throw signal.aborted ? whyEnded(signal) : error;
  });
}

function sized<Request, Asked extends SizedRequest<Request>>(asked: Asked, request: Request) {
  if (request === asked.request) return asked;
  // The caller's own body may be kept beside what was read of it.
  const text = JSON.stringify({ ...request, sent: undefined });
  return { ...asked, request, bodyBytes: Buffer.byteLength(text) };
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
