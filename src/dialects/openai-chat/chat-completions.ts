import type { ChatRequest } from "../../domain/chat/chat.ts";
import {
  eventStream,
  eventStreamHeaders,
  keepAliveComment,
} from "../../edge/replies/event-stream.ts";
import { jsonReply, type Reply } from "../../edge/replies/reply.ts";
import type { KeyCall } from "../../edge/dispatch/route.ts";
import type { Call } from "../../snapshot/call.ts";
import { openChatStream, runChat, type ChatCall } from "../../call/chat/chat-call.ts";
import { hasSettledWithin } from "../../domain/waiting/has-settled-within.ts";
import type { PipelineServices } from "../../call/services.ts";
import type { ApiSettings } from "../api-settings.ts";
import { withOptions } from "../call-options.ts";
import { chatBody } from "./chat-body.ts";
import { ChatChunkWriter } from "./chat-chunks.ts";
import { ChatFrames } from "./chat-frames.ts";
import type { StreamedAnswer } from "../../idempotency/answer.ts";
import {
  digestToShare,
  withoutSharing,
  type AnswerSharing,
} from "../../idempotency/idempotency.ts";
import { parseJson } from "../request/parse-json.ts";
import { parseChatRequest } from "./schema/chat-request.ts";
import { servedHeaders } from "../served-headers.ts";
import { restoreLargeSeed } from "./schema/large-seed.ts";

/** `POST /v1/chat/completions` */
export function createChatCompletions(
  services: PipelineServices,
  settings: () => ApiSettings,
  sharing: AnswerSharing = withoutSharing,
): (call: KeyCall) => Promise<Reply> {
  return async (plain) => {
    const call = withOptions(plain);
    const bytes = await call.readBody();
    const bodyBytes = bytes.byteLength;
    const bodyDigest = await digestToShare(call, bytes);
    const { value, text } = await parseJson(bytes);
    const request = restoreLargeSeed(parseChatRequest(value), text);
    const chat: ChatCall = { request, bodyBytes };
    const asked = {
      call,
      endpoint: "chat/completions",
      alias: request.model,
      bodyDigest,
    } as const;
    if (request.stream !== true) {
      return sharing.whole(asked, (run) => wholeReply(run, chat, services));
    }
    const parts = { chat, services, settings: settings() };
    const answer = await sharing.streamed(asked, (run) => openStream({ ...parts, call: run }));
    const { status, headers } = answer;
    return { status, headers, body: eventStreamBody(answer, { ...parts, call }) };
  };
}

async function wholeReply(
  call: KeyCall & Call,
  chat: ChatCall,
  services: PipelineServices,
): Promise<Reply> {
  const started = await runChat(call, chat, services);
  const { answer, attempt, meter } = started;
  const body = chatBody(answer, {
    id: completionId(call),
    created: Math.floor(services.clock.now() / 1000),
    model: attempt.candidate.model.alias,
    usage: meter.usage,
  });
  return jsonReply(body, servedHeaders(started, call.snapshot.routing));
}

interface StreamReply {
  readonly call: KeyCall & Call;
  readonly chat: ChatCall;
  readonly services: PipelineServices;
  readonly settings: ApiSettings;
}

/**
 * Waits for the first event, so that a failure before it is a proper HTTP error. Only a model that
 * thinks for longer than `holdHeadersMs` gets its headers sent early.
 */
async function openStream({
  call,
  chat,
  services,
  settings,
}: StreamReply): Promise<StreamedAnswer> {
  const opening = openChatStream(call, chat, services);
  // Without keep-alives there is nothing to send early, so the headers wait for as long as it takes.
  const isHeld = settings.keepAlive === "off";
  const isKnown =
    isHeld || (await hasSettledWithin(opening, settings.holdHeadersMs, services.clock));
  const started = isKnown ? await opening : undefined;
  const writer = new ChatChunkWriter({
    id: completionId(call),
    created: Math.floor(services.clock.now() / 1000),
    model: started?.attempt.candidate.model.alias ?? chat.request.model,
    includeUsage: includesUsage(chat.request),
    wantsLogprobs: chat.request.logprobs === true,
  });
  return {
    status: 200,
    headers: {
      ...eventStreamHeaders,
      ...(started !== undefined && servedHeaders(started, call.snapshot.routing)),
    },
    frames: new ChatFrames(opening, writer),
    keepAlive: settings.keepAlive === "chunk" ? writer.keepAlive() : keepAliveComment,
    isEarly: started === undefined,
  };
}

function eventStreamBody(
  { frames, keepAlive, isEarly }: StreamedAnswer,
  { call, services, settings }: StreamReply,
): ReadableStream<Uint8Array> {
  return eventStream(frames, {
    clock: services.clock,
    keepAliveMs: settings.keepAlive === "off" ? 0 : settings.keepAliveIntervalMs,
    keepAlive,
    beginsWithKeepAlive: isEarly,
    writeTimeoutMs: settings.writeTimeoutMs,
    onEnd: (end) => call.streamEnded(end),
  });
}

function includesUsage(request: ChatRequest): boolean {
  return request.stream_options?.include_usage === true;
}

function completionId(call: KeyCall): string {
  return `chatcmpl-${call.id.slice(4)}`;
}
