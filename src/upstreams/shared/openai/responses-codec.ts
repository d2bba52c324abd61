import { type Conversation, fieldOf } from "../../../domain/chat/conversation.ts";
import { unsupported } from "../../../domain/errors/upstream-failure.ts";
import { countOf, objectOf } from "../../../domain/json-fields.ts";
import { billedTier } from "../../../domain/money/service-tier.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { ChatCodec } from "../../adapter.ts";
import type { AnswerContext } from "../answers/answer-context.ts";
import type { OnUnknownFinish } from "../finish-words.ts";
import { type AnswerWire, createAnswerCodec, newSseParser } from "../answer-codec.ts";
import type { Ask } from "./chat-codec.ts";
import { readCounts } from "./read-counts.ts";
import { ResponseAnswer, type ResponseParts } from "./responses-answer.ts";

/** Fields of the public API without a name in a conversation, as of chat. */
export const ownFields: ReadonlySet<string> = new Set([
  "max_tool_calls",
  "prompt_cache_options",
  "prompt_cache_retention",
]);

interface CodecServices {
  readonly newToolCallId: () => string;
  readonly onUnknownFinish: OnUnknownFinish;
}

/** The Responses API, whole and streamed. */
export function createResponsesCodec(
  ask: Ask,
  services: CodecServices,
): Pick<ChatCodec, "encode" | "encodeStream"> {
  return createAnswerCodec((conversation, model) => {
    refuseOptions(conversation);
    const { askedTier, request, adjusted } = ask(conversation, model);
    const usageOf: ResponseParts["usageOf"] = ({ usage, service_tier: tier }) =>
      readUsage(usage, billedTier(tier, askedTier));
    const parts = { ...services, usageOf, context: contextOf(conversation) };
    const newReader = (): ResponseAnswer => new ResponseAnswer(parts);
    const wire: AnswerWire = {
      newParser: newSseParser,
      newReader,
      usageOf: (usage) => usageOf({ usage }),
    };
    return { request, adjusted, wire };
  });
}

/** The wire has no field for stop sequences, and calls have the caller's names. */
function contextOf({ tools, options }: Conversation): AnswerContext {
  return {
    toolNames: new Map(),
    textTools: new Set(),
    answerTool: undefined,
    usesFunctions: tools.some(({ isOld }) => isOld === true),
    stopSequences: options.stop ?? [],
    sentStop: undefined,
    check: undefined,
  };
}

/** Options that change the answer, and for which the wire has no field. Stops are made up for. */
function refuseOptions(request: Conversation): void {
  const { presencePenalty, frequencyPenalty, logitBias, n } = request.options;
  const asked = [
    ["presencePenalty", (presencePenalty ?? 0) !== 0],
    ["frequencyPenalty", (frequencyPenalty ?? 0) !== 0],
    ["logitBias", Object.keys(logitBias ?? {}).length > 0],
    ["n", (n ?? 1) > 1],
  ] as const;
  for (const [option, isAsked] of asked) {
    if (!isAsked) continue;
    const field = fieldOf(request, option);
    throw unsupported(field, `This model does not support ${field}. Remove it from the request.`);
  }
}

/** Undefined when it has no count. */
function readUsage(value: unknown, serviceTier: string | undefined): TokenUsage | undefined {
  const usage = objectOf(value);
  const input = objectOf(usage?.["input_tokens_details"]);
  const output = objectOf(usage?.["output_tokens_details"]);
  return readCounts({
    input: countOf(usage?.["input_tokens"]),
    output: countOf(usage?.["output_tokens"]),
    total: countOf(usage?.["total_tokens"]),
    cached: countOf(input?.["cached_tokens"]),
    cacheWrite: countOf(input?.["cache_write_tokens"]),
    reasoning: countOf(output?.["reasoning_tokens"]),
    serviceTier,
  });
}
