import { writeAnswer } from "../answer/write-answer.ts";
import type { Fault } from "../faults/fault-mode.ts";
import { outsizedAnswer } from "../faults/outsized-answer.ts";
import type { Reply } from "../frame.ts";
import { bodyReply } from "./refusal-faults.ts";
import { chunksOf } from "./chunks.ts";
import { completionBody, type AnswerIdentity } from "./completion.ts";
import type { ChatRequest } from "./read-chat-request.ts";
import { streamFrames } from "./stream-frames.ts";

/** Answers a chat request, plain or streamed. */
export function chatReply(request: ChatRequest, identity: AnswerIdentity, fault: Fault): Reply {
  const choices = Array.from(
    { length: request.choiceCount },
    (_, choice) => outsizedAnswer(fault) ?? writeAnswer(request.prompt, choice),
  );
  if (!request.isStreamed) {
    const { body, usage } = completionBody(identity, request, choices);
    return bodyReply(body, usage.completionTokens, fault);
  }
  return {
    status: 200,
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    },
    steps: streamFrames(chunksOf(identity, request, choices), fault),
    isStreamed: true,
  };
}
