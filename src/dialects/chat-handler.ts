import type { ChatResult } from "../domain/chat/answer.ts";
import type { Conversation } from "../domain/chat/conversation.ts";
import type { TokenUsage } from "../domain/usage/usage.ts";
import { eventStream, eventStreamHeaders, keepAliveComment } from "../edge/replies/event-stream.ts";
import { jsonReply, type Reply } from "../edge/replies/error-reply.ts";
import type { KeyCall } from "../edge/dispatch/route.ts";
import type { Clock } from "../domain/clock.ts";
import { modelNamed } from "../domain/model.ts";
import type { StartedCall } from "../call/run-call.ts";
import { type ChatCall, openChatStream, runChat } from "../call/chat/chat-call.ts";
import { hasSettledWithin } from "../domain/waiting/wait.ts";
import type { ResponseOwner } from "../idempotency/stored-responses.ts";
import type { OpenedAnswer, StreamedAnswer } from "../idempotency/answer.ts";
import type { AnswerOptions, StreamOptions, StreamWriter } from "../wires/stream-writer.ts";
import { ChatFrames, type OpeningStream } from "./chat-frames.ts";
import { type ApiSettings, type HandlerParts, readCall, servedHeaders } from "./read-call.ts";
import type { JsonBody } from "./request/parse-json.ts";

/** An endpoint for chat: how a dialect reads requests and writes answers. */
export interface ChatSurface {
  /** Part of the digests of idempotent calls. If it changes, stored answers are no longer found. */
  readonly endpoint: string;
  /** Whether the wire has an event for keep-alives that all clients know. */
  readonly hasPing?: true;
  /** Throws 400. A promise only where something that is stored must be read. */
  read(body: JsonBody, call: ReadingCall): ReadChat | Promise<ReadChat>;
}

/** What reading a body may need of its call. */
export interface ReadingCall extends ResponseOwner {
  readonly headers: Pick<Headers, "get">;
  readonly memory: Pick<KeyCall["memory"], "takesMore">;
}

/** A request that was read, and how its answer is written; the id in `about` is the call's. */
export interface ReadChat {
  readonly conversation: Conversation;
  /** Length of what a store added to the body, as JSON. */
  readonly storedBytes?: number;
  /** A whole answer, as JSON. */
  body(
    answer: ChatResult,
    about: AnswerOptions & { readonly usage: TokenUsage },
  ): object | Promise<object>;
  openWriter(about: StreamOptions): StreamWriter;
}

export function createChatHandler(
  surface: ChatSurface,
  { services, settings, repeats }: HandlerParts,
): (call: KeyCall) => Promise<Reply> {
  return async (call) => {
    const read = await readCall(call);
    const { bodyBytes, mark } = read;
    const reading = surface.read(read, call);
    const asking = reading instanceof Promise ? await reading : reading;
    const { conversation: request } = asking;
    const chat: ChatCall = { request, bodyBytes: bodyBytes + (asking.storedBytes ?? 0) };
    const { endpoint } = surface;
    const asked = { call, endpoint, kind: "chat", alias: request.model, mark } as const;
    const parts = { surface, asking, call, chat, services, settings: settings() };
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
  readonly surface: ChatSurface;
  readonly asking: ReadChat;
  readonly call: KeyCall;
  readonly chat: ChatCall;
  readonly settings: ApiSettings;
}

async function wholeReply(reply: ChatReply): Promise<Reply> {
  const { asking, call, chat, services } = reply;
  try {
    const started = await runChat(call, chat, services);
    const { answer, meter } = started;
    const body = asking.body(answer, {
      id: call.id,
      created: Math.floor(services.clock.now() / 1000),
      model: servedName(started, asking),
      usage: meter.usage,
    });
    const written = body instanceof Promise ? await body : body;
    return jsonReply(written, headersOf(started, reply));
  } finally {
    call.answerMemory.release();
  }
}

/**
 * Waits for the first event, so that a failure before it is a proper HTTP error. The headers are
 * sent early only when a model thinks for longer than `holdHeadersMs`.
 */
async function openStream(reply: ChatReply): Promise<OpenedAnswer> {
  const { surface, asking, call, chat, services, settings } = reply;
  const opening = openChatStream(call, chat, services).finally(call.memory.keep());
  // Without keep-alives there is nothing to send early, so the headers wait for the first event.
  const isHeld = settings.keepAlive === "off";
  const isKnown =
    isHeld || (await hasSettledWithin(opening, settings.holdHeadersMs, services.clock));
  const started = isKnown ? await opening : undefined;
  const now = secondsOf(services.clock);
  const writer = asking.openWriter({
    id: call.id,
    created: now(),
    now,
    model: started === undefined ? asking.conversation.model : servedName(started, asking),
    inputTokens: inputOf(opening),
  });
  return {
    status: 200,
    headers: {
      ...eventStreamHeaders,
      ...(started !== undefined && headersOf(started, reply)),
    },
    frames: new ChatFrames(opening, writer, call),
    keepAlive: keepAliveOf(
      surface.hasPing === true || settings.keepAlive === "chunk" ? writer : undefined,
    ),
    isEarly: started === undefined,
  };
}

// These three are outside `openStream`: closures of an asynchronous function keep all its variables,
// and so the request, for as long as the stream is open.

function secondsOf(clock: Clock): () => number {
  return () => Math.floor(clock.now() / 1000);
}

function inputOf(opening: OpeningStream): () => number {
  let tokens = 0;
  opening.then(
    ({ meter }) => {
      tokens = meter.inputTokens;
    },
    () => undefined,
  );
  return () => tokens;
}

function keepAliveOf(writer: StreamWriter | undefined): () => string {
  return () => writer?.keepAlive() ?? keepAliveComment;
}

type AnyStarted = Pick<StartedCall<unknown>, "admission" | "attempt" | "call" | "meter">;

function servedName({ attempt, call }: AnyStarted, { conversation }: ReadChat): string {
  const { model } = attempt.candidate;
  const asked = conversation.model;
  return modelNamed(call.environment, asked) === model ? asked : model.alias;
}

function headersOf(started: AnyStarted, { asking, call, services }: ChatReply) {
  const asRead = asking.conversation.adjusted;
  return servedHeaders(started, call, { clock: services.clock, asRead });
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
