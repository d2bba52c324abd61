import type { FinishReason } from "../../domain/chat/chat.ts";
import { brokenAnswer, type UpstreamFailure } from "../../domain/errors/upstream-failure.ts";
import { cleanCode } from "./failure-reply.ts";

/**
 * What a server's word for the end of an answer means: one of OpenAI's reasons, an answer that was
 * interrupted, or nothing known.
 */
export type FinishMeaning = FinishReason | "interrupted" | "unknown";

/** Words differ in case and separators: `MAX_TOKENS`, `max-tokens`, `FINISH_REASON_MAX_TOKENS`. */
export function readFinishWord(word: string): FinishMeaning {
  const folded = word
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .replace(/^(?:finish|stop)?reason/, "");
  const known = words.get(folded);
  if (known !== undefined) return known;
  if (interruptedWords.test(folded)) return "interrupted";
  return moderationWords.test(folded) ? "content_filter" : "unknown";
}

/** Whether a server says so that an answer goes on: some write it out instead of null. */
export function isNoFinishWord(word: string): boolean {
  return noFinish.test(word);
}

const noFinish = /^\s*(?:|null|none|not_?finished)\s*$/i;

/**
 * Words of OpenAI, Anthropic, Gemini, Bedrock, Cohere, Mistral, DeepSeek, Zhipu, xAI, Hugging Face,
 * vLLM, SGLang and llama.cpp, folded.
 */
const words: ReadonlyMap<string, FinishMeaning> = new Map<string, FinishMeaning>([
  ...of("stop", "stop stopped endturn stopsequence stopword stoptoken eos eostoken eot endoftext"),
  ...of("stop", "endofsequence end ended complete completed done finish finished success normal"),
  ...of("stop", "pauseturn"),
  ...of("length", "length maxtokens maxoutputtokens maxcompletiontokens maxnewtokens tokenlimit"),
  ...of("length", "maxlength maxlen modellength maxcontext limit contextlength truncated"),
  ...of("length", "modelcontextwindowexceeded contextwindowexceeded contextlengthexceeded"),
  ...of("length", "lengthexceeded lengthlimit maxtokensreached maxtokensexceeded maxoutputreached"),
  ...of("tool_calls", "toolcalls toolcall tooluse tools"),
  ...of("function_call", "functioncall functioncalls function"),
  ...of("content_filter", "contentfilter contentfiltered language errortoxic"),
  ...of("interrupted", "load unload killed oom"),
]);

function of(meaning: FinishMeaning, list: string): readonly (readonly [string, FinishMeaning])[] {
  return list.split(" ").map((word) => [word, meaning]);
}

/** An open set is never read as success: anything that sounds like a failure is one. */
const interruptedWords =
  /error|abort|cancel|time(?:d?out|limit)|deadline|overload|unavailable|exhaust|insufficient|fail|malformed|unexpected|interrupt|disconnect|exception|crash|preempt|evict|ratelimit|throttl|outofmemory|incomplete|missing|died|shutdown|restart|terminated|lost$|nocapacity|cachefull|pending|inprogress|stalled|maxtime/;
const moderationWords =
  /contentfilter|safety|sensitive|moderat|recitation|prohibited|blocked|blocklist|spii|refus|guardrail|toxic|policy|harmful|censor|unsafe|nsfw|inappropriate|violation|flagged|^hate|selfharm|^sexual|rejected/;

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
