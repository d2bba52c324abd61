import type { FinishReason } from "../../domain/chat/answer.ts";
import { brokenAnswer, type UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { anyOf, cleanCode } from "./failure-reply.ts";
import table from "./finish-words.json" with { type: "json" };

/**
 * What a server's word for the end of an answer means: a reason, an answer that was interrupted, or
 * nothing known.
 */
export type FinishMeaning = FinishReason | "interrupted" | "unknown";

/** Words differ in case and separators: `MAX_TOKENS`, `max-tokens`, `FINISH_REASON_MAX_TOKENS`. */
export function readFinishWord(word: string): FinishMeaning {
  const folded = word
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .replace(/^(?:finish|stop)?reason/, "");
  const known = meanings.get(folded);
  if (known !== undefined) return known;
  if (interruptedWords.test(folded)) return "interrupted";
  return moderationWords.test(folded) ? "content_filter" : "unknown";
}

/**
 * The reason of an answer with these calls. Agents stop at `stop`, so an answer with a call that must
 * be answered never has it, and one without a call never has the reason of one.
 */
export function finishReasonOf(
  meaning: Exclude<FinishMeaning, "interrupted">,
  calls: "tool_calls" | "function_call" | undefined,
): FinishReason {
  switch (meaning) {
    case "length":
    case "window_full":
    case "content_filter":
    case "refusal":
      return meaning;
    case "stop_sequence":
    case "pause":
      return calls ?? meaning;
    case "stop":
    case "tool_calls":
    case "function_call":
    case "unknown":
      return calls ?? "stop";
  }
}

/** Whether a server says so that an answer goes on: some write it out instead of null. */
export function isNoFinishWord(word: string): boolean {
  return noFinish.test(word);
}

const noFinish = /^\s*(?:|null|none|not_?finished)\s*$/i;

const reasons = [
  "stop",
  "stop_sequence",
  "length",
  "window_full",
  "tool_calls",
  "function_call",
  "content_filter",
  "refusal",
  "pause",
  "interrupted",
] as const satisfies readonly FinishMeaning[];

/**
 * Words of OpenAI, Anthropic, Gemini, Bedrock, Cohere, Mistral, DeepSeek, Zhipu, xAI, Hugging Face,
 * vLLM, SGLang and llama.cpp, folded.
 */
const meanings: ReadonlyMap<string, FinishMeaning> = new Map(
  reasons.flatMap((meaning) => table[meaning].map((word) => [word, meaning] as const)),
);

/** An open set is never read as success: anything that sounds like a failure is one. */
const interruptedWords = anyOf(table["sounds-interrupted"]);
const moderationWords = anyOf(table["sounds-moderated"]);

/** The failure of an answer that ended with such a word before it was whole. */
export function interruptedAnswer(word: string): UpstreamFailure {
  const reason = cleanCode(word) ?? "it did not say why";
  return brokenAnswer(`the upstream gave up on its answer: ${reason}`);
}

/** Called with a word for the end of an answer that is not known, as the server wrote it. */
export type OnUnknownFinish = (word: string) => void;

/** A server that sends arbitrary words must not fill the log. */
const mostReports = 32;

/** Reports each unknown word to the operator once. */
export function unknownFinishReport(onTrouble: (what: string) => void): OnUnknownFinish {
  const reported = new Set<string>();
  return (word) => {
    const name = cleanCode(word) ?? "one that is no name";
    if (reported.has(name) || reported.size >= mostReports) return;
    reported.add(name);
    onTrouble(`an answer ended for an unknown reason and was treated as finished: ${name}`);
  };
}
