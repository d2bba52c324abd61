import { lastUserText, type Prompt } from "./prompt.ts";
import { tokenize } from "./tokenizer.ts";
import { topicWords } from "./topic-words.ts";

const tokensByEffort: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 12,
  low: 32,
  medium: 64,
  high: 128,
  xhigh: 256,
  max: 512,
};

/** Thoughts before the answer, one token each, as many as the effort asks for. */
export function* writeReasoning(prompt: Prompt): Generator<string, void, undefined> {
  const effort = prompt.reasoningEffort;
  if (effort === undefined) return;
  const wanted = tokensByEffort[effort] ?? 64;
  const words = topicWords(lastUserText(prompt));
  const [topic = "this"] = words;
  let written = 0;
  for (let step = 1; written < wanted; step++) {
    const word = words[step % Math.max(1, words.length)] ?? topic;
    const thought = `Step ${step}: think about ${word}, and what it means for ${topic}. `;
    for (const token of tokenize(thought)) {
      if (written === wanted) return;
      written += 1;
      yield token;
    }
  }
}
