import { lastTurn, lastUserText, type Attachment, type Prompt } from "./prompt.ts";
import type { Random } from "./random.ts";
import { topicWords } from "./topic-words.ts";

/** A friendly, repeatable answer about what was said, which never claims to know anything. */
export function writeProse(prompt: Prompt, random: Random): string {
  const turn = lastTurn(prompt);
  if (turn?.role === "tool") return aboutToolResults(prompt, random);
  const text = lastUserText(prompt);
  const words = topicWords(text);
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
    `Let us look at ${topic}, one step at a time.`,
    `That is a good question about ${topic}.`,
    `Here is a short answer about ${topic}.`,
    `There is more to ${topic} than it seems at first.`,
    `People who ask about ${topic} usually want to know where to begin.`,
  ]);
}

function body(words: readonly string[], random: Random): string {
  const [first = "the question", second = "the small steps", third = "time"] = words;
  const sentences = [
    `Begin with ${first}: say in one sentence what it is for, and leave out the rest.`,
    `It helps to keep ${first} and ${second} apart, because they change for different reasons.`,
    `Most of the work lies in ${second}, and most of the surprises do too.`,
    `Try it with a small example before you trust it with a large one.`,
    `If ${third} matters, measure it first; guesses about it are rarely right.`,
    `When ${first} and ${second} disagree, believe the one that you can check.`,
    `A good answer for ${first} today is better than a perfect one for ${third} next month.`,
    `Write down what you expect of ${second}, then look whether it is so.`,
    `In the end ${first} is a matter of ${third}, and a little patience.`,
  ];
  const chosen: string[] = [];
  const count = random.integer(3, 5);
  for (let index = 0; chosen.length < count; index++) {
    const place = random.integer(0, sentences.length - 1);
    chosen.push(...sentences.splice(place, 1));
    if (index > 20) break;
  }
  return chosen.join(" ");
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
  const topic = phrase(topicWords(first).slice(0, 2));
  const start = topic === "" ? "" : `, and it all began with ${topic}`;
  return `This is turn ${userTurns} of our conversation${start}.`;
}

function aboutToolResults(prompt: Prompt, random: Random): string {
  const lastUser = prompt.turns.findLastIndex(({ role }) => role === "user");
  const results = prompt.turns.slice(lastUser + 1).filter(({ role }) => role === "tool");
  const said = results.map(({ name, text }) => {
    const shown = text.trim().slice(0, 400) || "nothing";
    return name === undefined ? shown : `${name} says ${shown}`;
  });
  const topic = phrase(topicWords(lastUserText(prompt)).slice(0, 3));
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
