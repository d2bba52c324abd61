import { type AnswerEvent, type ContentEvent, limitAnswer } from "./answer.ts";
import {
  countTokens,
  lastTurn,
  lastUserText,
  type Prompt,
  tokenize,
  type Tool,
  type Turn,
} from "./prompt.ts";
import { isRecord } from "../json.ts";
import { hashText, Random } from "./random.ts";
import { valueForSchema, type ValueSource } from "./schema-value.ts";

/**
 * Answers a prompt: the same prompt always gets the same answer. Written lazily, so that a million
 * tokens cost no memory.
 *
 * Lines of the last user message that script the answer:
 *
 * - `echo: <text>`: exactly `<text>`;
 * - `count: <n>`: the words "1 2 3 ..." up to n, one token each;
 * - `bulk: <n>`: n pieces of 16 KiB, one token each;
 * - `refuse: <anything>`: a refusal.
 *
 * A tool result that begins with `next: <tool>` makes the answer call that tool. A user message with
 * a script of steps makes the model an agent: see `nextStep`.
 */
export function writeAnswer(prompt: Prompt, choice: number): Generator<AnswerEvent, void, void> {
  return limitAnswer(writeContent(prompt, choice), prompt);
}

function* writeContent(prompt: Prompt, choice: number): Generator<ContentEvent, void, void> {
  const random = new Random(fingerprint(prompt, choice));
  for (const piece of writeReasoning(prompt)) yield { kind: "reasoning", piece, tokens: 1 };
  const text = lastTurn(prompt)?.role === "user" ? lastUserText(prompt) : "";
  if (/^\s*refuse:/i.test(text)) {
    const refusal = "I'm sorry, but I can't help with that request.";
    for (const piece of tokenize(refusal)) yield { kind: "refusal", piece, tokens: 1 };
    return;
  }
  const step = nextStep(prompt);
  if (step !== undefined) return yield* writeStep(step, prompt, random);
  const tools = chooseTools(prompt);
  if (tools.length > 0) {
    const calls = tools.map((tool) => ({ tool, input: inputFor(tool, prompt, random) }));
    yield* writeCalls(calls, random);
  } else {
    for (const piece of textPieces(prompt, text, random)) yield { kind: "text", piece, tokens: 1 };
  }
}

/** At the start of a line: agents put their own text before the user's. */
const scriptWords = /(?:^|\n)\s*(echo|count|bulk): ?([\s\S]*)$/i;

function textPieces(prompt: Prompt, text: string, random: Random): Iterable<string> {
  const [, script, scripted = ""] = scriptWords.exec(text) ?? [];
  if (script?.toLowerCase() === "echo") return tokenize(scripted);
  if (script !== undefined && /^\s*\d+\s*$/.test(scripted)) {
    const last = Number(scripted);
    return script.toLowerCase() === "count" ? countTo(last) : bulk(last);
  }
  switch (prompt.output.kind) {
    case "text":
      return tokenize(writeProse(prompt, random));
    case "json":
      return tokenize(JSON.stringify(plainObject(prompt, random)));
    case "schema": {
      const value = valueForSchema(prompt.output.schema, valueSource(prompt, random));
      return tokenize(JSON.stringify(value));
    }
  }
}

export function* countTo(last: number): Generator<string, void, void> {
  for (let number = 1; number <= last; number++) yield number === 1 ? "1" : ` ${number}`;
}

const bulkPiece = "sixteen letters ".repeat(1024);

function* bulk(pieces: number): Generator<string, void, void> {
  for (let piece = 0; piece < pieces; piece += 1) yield bulkPiece;
}

function plainObject(prompt: Prompt, random: Random): object {
  return {
    answer: writeProse({ ...prompt, output: { kind: "text" } }, random).split("\n\n")[0],
    topics: topicWords(lastUserText(prompt), 5),
    confidence: random.integer(50, 95) / 100,
  };
}

interface WantedCall {
  readonly tool: Tool;
  readonly input: string;
}

function* writeCalls(
  calls: readonly WantedCall[],
  random: Random,
): Generator<ContentEvent, void, void> {
  for (const [index, { tool, input }] of calls.entries()) {
    const hash = hashText(`${tool.name} ${index}`, random.integer(0, 0xffff_ffff));
    yield {
      kind: "call",
      index,
      count: calls.length,
      id: `call_${hash.toString(36).padStart(7, "0")}${index}${random.integer(1e9, 9e9).toString(36)}`,
      name: tool.name,
      tool: tool.kind,
      tokens: 3 + countTokens(tool.name),
    };
    for (const piece of tokenize(input)) {
      yield { kind: "input", index, tool: tool.kind, piece, tokens: 1 };
    }
  }
}

function* writeStep(
  { tool: name, input, text }: Step,
  { tools }: Prompt,
  random: Random,
): Generator<ContentEvent, void, void> {
  const tool = tools.find((each) => each.name === name || each.name.endsWith(`__${name}`));
  const offered = tools.map((each) => each.name).join(", ");
  const isAbsent = name !== undefined && tool === undefined;
  const said = isAbsent ? `The script calls ${name}; the agent offers ${offered}.` : (text ?? "");
  for (const piece of tokenize(said)) yield { kind: "text", piece, tokens: 1 };
  if (tool === undefined) return;
  const written = typeof input === "string" ? input : JSON.stringify(input ?? {});
  yield* writeCalls([{ tool, input: written }], random);
}

function inputFor(tool: Tool, prompt: Prompt, random: Random): string {
  if (tool.kind === "function") {
    return JSON.stringify(valueForSchema(tool.schema, valueSource(prompt, random)));
  }
  return lastUserText(prompt).trim() || "nothing in particular";
}

function valueSource(prompt: Prompt, random: Random): ValueSource {
  const userText = lastUserText(prompt);
  return {
    random,
    hints: { userText, names: properNames(userText), words: topicWords(userText) },
  };
}

/** A hash of everything that changes the answer. Limits only cut it. */
function fingerprint(prompt: Prompt, choice: number): number {
  const { model, seed, turns, output } = prompt;
  return hashText(JSON.stringify([model, seed, choice, turns.map(ordered), output]));
}

/** The same fields in the same order for every wire. */
function ordered({ role, name, toolCalls, text, attachments }: Turn): Turn {
  return {
    role,
    name,
    toolCalls: toolCalls.map((call) => ({ name: call.name, input: call.input })),
    text,
    attachments: attachments.map((attachment) => ({
      kind: attachment.kind,
      name: attachment.name,
      mediaType: attachment.mediaType,
      sizeBytes: attachment.sizeBytes,
    })),
  };
}

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
function* writeReasoning(prompt: Prompt): Generator<string, void, undefined> {
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

/** A friendly, repeatable answer about the topics of the prompt, without claims of fact. */
function writeProse(prompt: Prompt, random: Random): string {
  const turn = lastTurn(prompt);
  const words = topicWords(lastUserText(prompt));
  const longest = words.toSorted((one, other) => other.length - one.length).slice(0, 3);
  const topics = words
    .filter((word) => longest.includes(word))
    .map((word) => `\u201c${word}\u201d`);
  const greeting =
    topics.length === 0
      ? "Hello! Ask me anything, and I will make something up."
      : `A good question. It seems to turn on ${topics.join(", ")}.`;
  const opening =
    turn?.role === "tool" ? `Here is what the tools found: ${toolResults(prompt)}.` : greeting;
  const files = (turn?.attachments ?? []).map(
    ({ kind, mediaType, sizeBytes }) =>
      `With your message came one ${kind} (${mediaType ?? "an address"}, ${sizeBytes ?? "?"} bytes).`,
  );
  const closing = `(Sluice's simulator wrote this in place of ${prompt.model}. The words are made up, the wire format is real.)`;
  return [opening, advice(topics, random), ...files, closing].join("\n\n");
}

function advice(
  [first = "the question", second = "the details"]: readonly string[],
  random: Random,
): string {
  const sentences = [
    `Begin with ${first}: say in one sentence what you want from it, and leave out the rest.`,
    `It helps to look at ${first} and ${second} apart, because they change for different reasons.`,
    `Most of the work hides behind ${second}, and most of the surprises do too.`,
    "Try it with a small example before you trust it with a large one.",
    `In the end, ${first} and ${second} ask for the same thing: a little patience.`,
  ];
  const start = random.integer(0, sentences.length - 1);
  return [...sentences.slice(start), ...sentences.slice(0, start)].slice(0, 3).join(" ");
}

function toolResults({ turns }: Prompt): string {
  return turns
    .slice(turns.findLastIndex(({ role }) => role === "user") + 1)
    .filter(({ role }) => role === "tool")
    .map(({ name, text }) => `${name ?? "a tool"} says ${text.trim().slice(0, 400) || "nothing"}`)
    .join("; ");
}

/** Words in tool names that give no hint when to call one. */
const genericParts = new Set(
  "get set list find search create update fetch lookup look make run do call use tool api query".split(
    " ",
  ),
);

/** The offered tools that the answer calls, in the order they were offered. */
function chooseTools(prompt: Prompt): readonly Tool[] {
  const { mode, only, isParallel } = prompt.toolUse;
  const offered = prompt.tools.filter((tool) => only?.includes(tool.name) ?? true);
  const [first] = offered;
  if (mode === "none" || first === undefined) return [];
  const last = lastTurn(prompt);
  if (mode === "auto" && last?.role !== "user") return nextTool(offered, last?.text ?? "");
  // The client is an agent, whose tools change things: it gets the calls of a script alone.
  if (mode === "auto" && offered.length > mostGuessed) return [];
  const text = lastUserText(prompt).toLowerCase();
  const known = callsSinceUser(prompt);
  const matching = offered.filter((tool) => isAskedFor(tool, text) && !known.has(tool.name));
  const called =
    matching.length === 0 && mode === "required" ? [answerTool(offered) ?? first] : matching;
  return isParallel ? called : called.slice(0, 1);
}

/** Most tools among which the answer guesses what the user wants. */
const mostGuessed = 8;

/** The tool that a result asks for in its turn: `next: <name>`. */
function nextTool(offered: readonly Tool[], result: string): readonly Tool[] {
  const [, name] = /^\s*next: (\S+)/.exec(result) ?? [];
  return offered.filter((tool) => tool.name === name);
}

/** A text, a call, or both. */
interface Step {
  readonly tool?: string;
  /** The text of a free-text tool, or an object. */
  readonly input?: unknown;
  readonly text?: string;
}

/**
 * The turn of a scripted agent: `steps: [{"tool":"Read","input":{"path":"a"}},{"text":"Done."}]
 * end of steps` in a user message has a step for each of the model's turns after it. Undefined
 * without such a script, when it is over, or when no tools are offered.
 */
function nextStep({ turns, tools }: Prompt): Step | undefined {
  if (tools.length === 0) return undefined;
  const at = turns.findLastIndex(({ role, text }) => role === "user" && steps.test(text));
  const [, json = ""] = steps.exec(turns[at]?.text ?? "") ?? [];
  if (json === "") return undefined;
  const answered = turns.slice(at + 1).filter(({ role }) => role === "assistant").length;
  const list = parseSteps(json);
  const step: unknown = Array.isArray(list) ? list[answered] : undefined;
  if (!isRecord(step)) return undefined;
  const { tool, input, text } = step;
  return {
    input,
    ...(typeof tool === "string" && { tool }),
    ...(typeof text === "string" && { text }),
  };
}

/** Some agents quote the words of their command line, and escape the quotes inside. */
function parseSteps(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return JSON.parse(json.replaceAll(/\\(["\\])/g, "$1"));
  }
}

const steps = /steps: (\[[\s\S]*\]) end of steps/;

/** The tool that a model calls if it must call one and none matches. */
function answerTool(offered: readonly Tool[]): Tool | undefined {
  return offered.find((tool) => /\banswer\b/i.test(tool.description));
}

/** Names of the tools that were called since the last user message. */
function callsSinceUser({ turns }: Prompt): ReadonlySet<string> {
  const start = turns.findLastIndex((turn) => turn.role === "user");
  return new Set(turns.slice(start + 1).flatMap((turn) => turn.toolCalls.map(({ name }) => name)));
}

/** Whether the text has the tool's name, a specific part of it, or two words of its description. */
function isAskedFor(tool: Tool, text: string): boolean {
  if (text.includes(tool.name.toLowerCase())) return true;
  const asked = new Set(topicWords(text, 200).map(stem));
  const isMentioned = (word: string): boolean => asked.has(stem(word));
  const parts = tool.name
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((part) => part.length >= 3 && !genericParts.has(part));
  if (parts.some(isMentioned)) return true;
  return topicWords(tool.description, 40).filter(isMentioned).length >= 2;
}

/** The same stem for "prices" and "price", "booked" and "booking"; crude, but sufficient here. */
function stem(word: string): string {
  return word.length > 4 ? word.replace(/(?:ing|ed|es|s|e)$/, "") : word;
}

const commonWords = new Set(
  (
    "the and for are but not you your with this that from have has had was were will would can " +
    "could should shall may might must what when where which who whom why how about into onto " +
    "over under than then them they their there here its his her him she our out please tell " +
    "give make show want need like just some any all one two very more most much many also " +
    "does did doing done been being let say said know think explain describe write using use " +
    "me my is it in on at to of or as an be by do if we us so no yes i'm don't it's hello hi hey " +
    "today now answer question thanks thank find see look how short long few both each other such only same too"
  ).split(" "),
);

/** The distinct words of a text except common ones, in order and in lower case. */
function topicWords(text: string, limit = 12): string[] {
  const found = new Set<string>();
  for (const [word] of text.slice(0, 8192).matchAll(/\p{L}[\p{L}\p{N}'-]{2,}/gu)) {
    const lowered = word.toLowerCase();
    if (!commonWords.has(lowered)) found.add(lowered);
    if (found.size === limit) break;
  }
  return [...found];
}

/** Words that look like names of people, places or things: capitals inside a sentence. */
function properNames(text: string): string[] {
  const found = new Set<string>();
  const pattern =
    /(?<=[\p{L}\p{N},;:'")] ["'(]?)\p{Lu}[\p{L}\p{N}'-]+(?: \p{Lu}[\p{L}\p{N}'-]+)*/gu;
  for (const [name] of text.slice(0, 8192).matchAll(pattern)) {
    if (!commonWords.has(name.toLowerCase())) found.add(name);
  }
  return [...found];
}
