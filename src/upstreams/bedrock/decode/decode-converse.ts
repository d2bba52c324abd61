import type {
  ChatChoice,
  ChatEvent,
  ChatResult,
  FinishReason,
  GuardrailOutcome,
  ReasoningBlock,
  ResultToolCall,
} from "../../../domain/chat/chat.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import type { WholeAnswer } from "../../adapter.ts";
import type { AnswerContext } from "../encode/answer-context.ts";
import { converseEvents } from "./converse-events.ts";
import type { OnUnknownStopReason } from "./stop-reason.ts";

/** Reads a whole Converse answer. Throws `UpstreamFailure` for anything else. */
export function decodeConverse(
  { headers, body }: WholeAnswer,
  context: AnswerContext,
  onUnknownStopReason: OnUnknownStopReason = () => undefined,
): ChatResult {
  const json = new TextDecoder().decode(body);
  const result = new Collector();
  const events = converseEvents({ json, headers }, context, onUnknownStopReason);
  for (const event of events) result.add(event);
  return result.result();
}

interface OpenToolCall extends ResultToolCall {
  arguments: string;
}

/** Joins the events of one choice into a result. */
class Collector {
  #content: string | undefined;
  #reasoning: string | undefined;
  readonly #reasoningBlocks: ReasoningBlock[] = [];
  readonly #toolCalls: OpenToolCall[] = [];
  #functionCall: { readonly name: string; arguments: string } | undefined;
  #finishReason: FinishReason = "stop";
  #guardrail: GuardrailOutcome | undefined;
  #usage: TokenUsage | undefined;
  #serviceTier: string | undefined;

  add(event: ChatEvent): void {
    switch (event.type) {
      case "answer-start":
        this.#serviceTier = event.serviceTier;
        break;
      case "text-delta":
        this.#content = (this.#content ?? "") + event.text;
        break;
      case "reasoning-delta":
        this.#reasoning = (this.#reasoning ?? "") + event.text;
        break;
      case "reasoning-block":
        this.#reasoningBlocks.push(event.content);
        break;
      case "tool-call-start": {
        const { id, kind, name } = event;
        this.#toolCalls.push({ id, kind, name, arguments: "" });
        break;
      }
      case "tool-call-delta": {
        const call = this.#toolCalls[event.call];
        if (call !== undefined) call.arguments += event.arguments;
        break;
      }
      case "function-call-start":
        this.#functionCall = { name: event.name, arguments: "" };
        break;
      case "function-call-delta":
        if (this.#functionCall !== undefined) this.#functionCall.arguments += event.arguments;
        break;
      case "choice-finish":
        this.#finishReason = event.finishReason;
        this.#guardrail = event.guardrail;
        break;
      case "usage-report":
        this.#usage = event.usage;
        break;
      case "refusal-delta":
        break;
    }
  }

  result(): ChatResult {
    return {
      choices: [this.#choice()],
      usage: this.#usage,
      systemFingerprint: undefined,
      serviceTier: this.#serviceTier,
    };
  }

  #choice(): ChatChoice {
    return {
      index: 0,
      content: this.#content,
      refusal: undefined,
      reasoning: this.#reasoning,
      ...(this.#reasoningBlocks.length > 0 && { reasoningBlocks: this.#reasoningBlocks }),
      toolCalls: this.#toolCalls,
      functionCall: this.#functionCall,
      finishReason: this.#finishReason,
      logprobs: undefined,
      ...(this.#guardrail !== undefined && { guardrail: this.#guardrail }),
    };
  }
}
