import type { ChatResult } from "../domain/chat/answer.ts";
import type { Conversation } from "../domain/chat/conversation.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";
import { eventStream, eventStreamHeaders, keepAliveComment } from "../edge/replies/event-stream.ts";
import { jsonReply, type Reply } from "../edge/replies/error-reply.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import { type ChatCall, openChatStream, runChat } from "../call/chat/chat-call.ts";
import { hasSettledWithin } from "../domain/waiting/wait.ts";
import type { OpenedAnswer, StreamedAnswer } from "../idempotency/answer.ts";
import { ChatFrames, type ChatWriter } from "./chat-frames.ts";
import { type ApiSettings, type HandlerParts, readCall, servedHeaders } from "./read-call.ts";
import type { JsonBody } from "./request/parse-json.ts";

/** Metadata of an answer. `now` is the time in Unix seconds. */
export interface AboutAnswer {
  readonly callId: string;
  /** Unix seconds. */
  readonly created: number;
  /** The alias of the model that served. */
  readonly model: string;
}

/** An endpoint for chat: how a dialect reads requests and writes answers. */
export interface ChatSurface {
  /** Part of the digests of idempotent calls. If it changes, stored answers are no longer found. */
  readonly endpoint: string;
  /** Throws 400. */
  read(body: JsonBody, headers: Pick<Headers, "get">): ReadChat;
}

/** A request that was read, and how its answer is written. */
export interface ReadChat {
  readonly conversation: Conversation;
  /** A whole answer, as JSON. */
  body(answer: ChatResult, about: AboutAnswer & { readonly usage: TokenUsage }): object;
  openWriter(about: AboutAnswer & { readonly now: () => number }): ChatWriter;
}

/** Handles calls of an endpoint for chat. */
export function createChatHandler(
  surface: ChatSurface,
  { services, settings, repeats }: HandlerParts,
): (call: KeyCall) => Promise<Reply> {
  return async (plain) => {
    const read = await readCall(plain);
    const { call, bodyBytes, mark } = read;
    const asking = surface.read(read, call.headers);
    const { conversation: request } = asking;
    const chat: ChatCall = { request, bodyBytes };
    const { endpoint } = surface;
    const asked = { call, endpoint, kind: "chat", alias: request.model, mark } as const;
    const parts = { asking, call, chat, services, settings: settings() };
    if (!request.isStreamed) {
      return repeats.whole(asked, () => wholeReply(parts));
    }
    return repeats.streamed(
      asked,
      () => openStream(parts),
      (answer) => streamReply(answer, parts),
    );
  };
}

interface ChatReply extends Pick<HandlerParts, "services"> {
  readonly asking: ReadChat;
  readonly call: KeyCall;
  readonly chat: ChatCall;
  readonly settings: ApiSettings;
}

async function wholeReply({ asking, call, chat, services }: ChatReply): Promise<Reply> {
  try {
    const started = await runChat(call, chat, services);
    const { answer, attempt, meter } = started;
    const body = asking.body(answer, {
      callId: call.id,
      created: Math.floor(services.clock.now() / 1000),
      model: attempt.candidate.model.alias,
      usage: meter.usage,
    });
    return jsonReply(body, servedHeaders(started, call.snapshot.routing));
  } finally {
    call.answerMemory.release();
  }
}

/**
 * Waits for the first event, so that a failure before it is a proper HTTP error. The headers are
 * sent early only when a model thinks for longer than `holdHeadersMs`.
 */
async function openStream(reply: ChatReply): Promise<OpenedAnswer> {
  const { asking, call, chat, services, settings } = reply;
  const opening = openChatStream(call, chat, services).finally(call.memory.keep());
  // Without keep-alives there is nothing to send early, so the headers wait for the first event.
  const isHeld = settings.keepAlive === "off";
  const isKnown =
    isHeld || (await hasSettledWithin(opening, settings.holdHeadersMs, services.clock));
  const started = isKnown ? await opening : undefined;
  const now = (): number => Math.floor(services.clock.now() / 1000);
  const writer = asking.openWriter({
    callId: call.id,
    created: now(),
    now,
    model: started?.attempt.candidate.model.alias ?? chat.request.model,
  });
  return {
    status: 200,
    headers: {
      ...eventStreamHeaders,
      ...(started !== undefined && servedHeaders(started, call.snapshot.routing)),
    },
    frames: new ChatFrames(opening, writer, call.dialect),
    keepAlive: settings.keepAlive === "chunk" ? writer.keepAlive() : keepAliveComment,
    isEarly: started === undefined,
  };
}

function streamReply(
  { status, headers, frames, keepAlive, isEarly }: StreamedAnswer,
  { call, services, settings }: ChatReply,
): Reply {
  const body = eventStream(frames, {
    clock: services.clock,
    keepAliveMs: settings.keepAlive === "off" ? 0 : settings.keepAliveIntervalMs,
    keepAlive,
    beginsWithKeepAlive: isEarly,
    writeTimeoutMs: settings.writeTimeoutMs,
    onEnd: (end) => call.streamEnded(end),
  });
  return { status, headers, body };
}
