import { lastTurn, lastUserText, type Attachment, type Prompt } from "./prompt.ts";
import type { Random } from "./random.ts";
import { topicWords } from "./topic-words.ts";

/** A friendly, repeatable answer about what was said, which never claims to know anything. */
export function writeProse(prompt: Prompt, random: Random): string {
  const turn = lastTurn(prompt);
  if (turn?.role === "tool") return aboutToolResults(prompt, random);
  const text = lastUserText(prompt);
  const words = quotedTopics(text);
  const attachments = turn?.attachments ?? [];
  const parts = [opening(text, words, random)];
  if (attachments.length > 0) parts.push(aboutAttachments(attachments));
  parts.push(body(words, random));
  const earlier = prompt.turns.filter(({ role }) => role === "user").length;
  if (earlier > 1) parts.push(aboutConversation(prompt, earlier));
  parts.push(closing(prompt, random));
  return parts.join("\n\n");
}

function opening(text: string, words: readonly string[], random: Random): string {
  if (/^\s*(hi|hello|hey|good (morning|evening|afternoon))\b/i.test(text)) {
    const greeting = random.pick([
      "Hello! It is good to hear from you.",
      "Hi there, and welcome.",
      "Hello, and thank you for saying hello first.",
    ]);
    return words.length === 0
      ? `${greeting} Ask me anything, and I will make something up.`
      : greeting;
  }
  const topic = phrase(words.slice(0, 3));
  if (topic === "") return "You have not said much yet, so here is a thought to begin with.";
  return random.pick([
    `You mention ${topic}; let us take that one step at a time.`,
    `A good question. It seems to turn on ${topic}.`,
    `Here is a short answer, with an eye on ${topic}.`,
    `There is more to ${topic} than meets the eye.`,
    `When people bring up ${topic}, they usually want to know where to begin.`,
  ]);
}

function body(words: readonly string[], random: Random): string {
  const [first = "the question", second = "the details", third = "the rest"] = words;
  const sentences = [
    `Begin with ${first}: say in one sentence what you want from it, and leave out the rest.`,
    `It helps to look at ${first} and ${second} apart, because they change for different reasons.`,
    `Most of the work hides behind ${second}, and most of the surprises do too.`,
    "Try it with a small example before you trust it with a large one.",
    `Where ${third} comes in, measure first; guesses are rarely right.`,
    `When ${first} and ${second} seem to disagree, believe the one that you can check.`,
    `A plain answer on ${first} today is better than a perfect one on ${third} next month.`,
    `Write down what you expect of ${second}, then look whether it is so.`,
    `In the end, ${first} and ${third} ask for the same thing: a little patience.`,
  ];
  const chosen: string[] = [];
  for (let left = random.integer(3, 5); left > 0; left--) {
    chosen.push(...sentences.splice(random.integer(0, sentences.length - 1), 1));
  }
  return chosen.join(" ");
}

/** The longest words of a text, in quotes: quoted, a word of any kind fits into any sentence. */
function quotedTopics(text: string): string[] {
  const words = topicWords(text);
  const longest = words.toSorted((one, other) => other.length - one.length).slice(0, 3);
  return words.filter((word) => longest.includes(word)).map((word) => `\u201c${word}\u201d`);
}

function aboutAttachments(attachments: readonly Attachment[]): string {
  const described = attachments.map((attachment) => {
    const size = attachment.sizeBytes;
    const kind = attachment.mediaType ?? "given by its address";
    const name = attachment.name === undefined ? "" : ` called ${attachment.name}`;
    const weight = size === undefined ? "" : `, ${size} ${size === 1 ? "byte" : "bytes"}`;
    return `${attachment.kind === "audio" ? "an" : "a"} ${nounOf(attachment)}${name} (${kind}${weight})`;
  });
  return `With your message came ${phrase(described)}. I can see its type and size, not its content.`;
}

function nounOf(attachment: Attachment): string {
  if (attachment.kind === "audio") return "audio recording";
  return attachment.kind === "image" ? "picture" : "file";
}

function aboutConversation(prompt: Prompt, userTurns: number): string {
  const first = prompt.turns.find(({ role }) => role === "user")?.text ?? "";
  const topic = phrase(quotedTopics(first).slice(0, 2));
  const start = topic === "" ? "" : `, and it began with ${topic}`;
  return `This is turn ${userTurns} of our conversation${start}.`;
}

function aboutToolResults(prompt: Prompt, random: Random): string {
  const lastUser = prompt.turns.findLastIndex(({ role }) => role === "user");
  const results = prompt.turns.slice(lastUser + 1).filter(({ role }) => role === "tool");
  const said = results.map(({ name, text }) => {
    const shown = text.trim().slice(0, 400) || "nothing";
    return name === undefined ? shown : `${name} says ${shown}`;
  });
  const topic = phrase(quotedTopics(lastUserText(prompt)));
  const lead = random.pick([
    "Here is what the tools found",
    "I have looked it up",
    "The results are in",
  ]);
  return `${lead}${topic === "" ? "" : ` about ${topic}`}: ${said.join("; ")}.`;
}

function closing(prompt: Prompt, random: Random): string {
  return random.pick([
    `(Sluice's simulator wrote this in place of ${prompt.model}. The words are made up, the wire format is real.)`,
    `(You are reading the simulator, which stands in for ${prompt.model} until a real upstream is configured.)`,
  ]);
}

function phrase(items: readonly string[]): string {
  if (items.length <= 1) return items[0] ?? "";
  return `${items.slice(0, -1).join(", ")} and ${items.at(-1) ?? ""}`;
}
