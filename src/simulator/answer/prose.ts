import { lastTurn, lastUserText, type Attachment, type Prompt } from "./prompt.ts";
import type { Random } from "./random.ts";
import { topicWords } from "./topic-words.ts";

/** A friendly, repeatable answer about the topics of the prompt, without claims of fact. */
export function writeProse(prompt: Prompt, random: Random): string {
  const turn = lastTurn(prompt);
  const topics = quotedTopics(lastUserText(prompt));
  const closing = `(Sluice's simulator wrote this in place of ${prompt.model}. The words are made up, the wire format is real.)`;
  if (turn?.role === "tool") {
    return `Here is what the tools found: ${toolResults(prompt)}.\n\n${advice(topics, random)}\n\n${closing}`;
  }
  const opening =
    topics.length === 0
      ? "Hello! Ask me anything, and I will make something up."
      : `A good question. It seems to turn on ${topics.join(", ")}.`;
  const about = [...attachments(turn?.attachments ?? []), ...conversation(prompt)];
  return [opening, advice(topics, random), ...about, closing].join("\n\n");
}

function advice(
  [first = "the question", second = "the details"]: string[],
  random: Random,
): string {
  const sentences = [
    `Begin with ${first}: say in one sentence what you want from it, and leave out the rest.`,
    `It helps to look at ${first} and ${second} apart, because they change for different reasons.`,
    `Most of the work hides behind ${second}, and most of the surprises do too.`,
    "Try it with a small example before you trust it with a large one.",
    `Write down what you expect of ${second}, then look whether it is so.`,
    `In the end, ${first} and ${second} ask for the same thing: a little patience.`,
  ];
  const chosen: string[] = [];
  for (let left = random.integer(3, 5); left > 0; left--) {
    chosen.push(...sentences.splice(random.integer(0, sentences.length - 1), 1));
  }
  return chosen.join(" ");
}

/** The longest words of a text, quoted so that they fit into any sentence. */
function quotedTopics(text: string): string[] {
  const words = topicWords(text);
  const longest = words.toSorted((one, other) => other.length - one.length).slice(0, 3);
  return words.filter((word) => longest.includes(word)).map((word) => `\u201c${word}\u201d`);
}

function attachments(given: readonly Attachment[]): string[] {
  return given.map(({ kind, mediaType = "given by its address", sizeBytes, name }) => {
    const size = sizeBytes === undefined ? "" : `, ${sizeBytes} bytes`;
    const called = name === undefined ? "" : ` called ${name}`;
    return `With your message came one ${kind}${called} (${mediaType}${size}).`;
  });
}

function conversation({ turns }: Prompt): string[] {
  const [first, ...later] = turns.filter(({ role }) => role === "user");
  if (first === undefined || later.length === 0) return [];
  const topics = quotedTopics(first.text).join(", ") || "few words";
  return [`This is turn ${later.length + 1} of our conversation, and it began with ${topics}.`];
}

function toolResults({ turns }: Prompt): string {
  return turns
    .slice(turns.findLastIndex(({ role }) => role === "user") + 1)
    .filter(({ role }) => role === "tool")
    .map(({ name, text }) => {
      const shown = text.trim().slice(0, 400) || "nothing";
      return name === undefined ? shown : `${name} says ${shown}`;
    })
    .join("; ");
}
