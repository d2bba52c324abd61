import type { AnswerEvent, ContentEvent } from "./answer-event.ts";
import { chooseTools } from "./choose-tools.ts";
import { limitAnswer } from "./limit-answer.ts";
import { lastTurn, lastUserText, type Prompt, type Tool, type Turn } from "./prompt.ts";
import { writeProse } from "./prose.ts";
import { textForPattern } from "./schema/pattern-text.ts";
import { hashText, Random } from "./random.ts";
import { valueForSchema, type ValueSource } from "./schema/schema-value.ts";
import { countTokens, tokenize } from "./tokenizer.ts";
import { properNames, topicWords } from "./topic-words.ts";
import { writeReasoning } from "./write-reasoning.ts";

/**
 * Answers a prompt: the same prompt always gets the same answer. Written lazily, so that a million
 * tokens cost no memory.
 *
 * Texts of the last user message that script the answer:
 *
 * - `echo: <text>`: exactly `<text>`;
 * - `count: <n>`: the words "1 2 3 ..." up to n, one token each;
 * - `bulk: <n>`: n pieces of 16 KiB, one token each;
 * - `refuse: <anything>`: a refusal.
 *
 * A tool result that begins with `next: <tool>` makes the answer call that tool.
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
  const tools = chooseTools(prompt);
  if (tools.length > 0) yield* writeCalls(tools, prompt, random);
  else for (const piece of textPieces(prompt, text, random)) yield textEvent(piece);
}

function textEvent(piece: string): ContentEvent {
  return { kind: "text", piece, tokens: 1 };
}

function textPieces(prompt: Prompt, text: string, random: Random): Iterable<string> {
  const [, script, scripted = ""] = /^\s*(echo|count|bulk): ?([\s\S]*)$/i.exec(text) ?? [];
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

function* writeCalls(
  tools: readonly Tool[],
  prompt: Prompt,
  random: Random,
): Generator<ContentEvent, void, void> {
  for (const [index, tool] of tools.entries()) {
    const hash = hashText(`${tool.name} ${index}`, random.integer(0, 0xffff_ffff));
    yield {
      kind: "call",
      index,
      count: tools.length,
      id: `call_${hash.toString(36).padStart(7, "0")}${index}${random.integer(1e9, 9e9).toString(36)}`,
      name: tool.name,
      tool: tool.kind,
      tokens: 3 + countTokens(tool.name),
    };
    const input = inputFor(tool, prompt, random);
    for (const piece of tokenize(input)) {
      yield { kind: "input", index, tool: tool.kind, piece, tokens: 1 };
    }
  }
}

function inputFor(tool: Tool, prompt: Prompt, random: Random): string {
  if (tool.kind === "function") {
    return JSON.stringify(valueForSchema(tool.schema, valueSource(prompt, random)));
  }
  const matching = tool.pattern === undefined ? undefined : textForPattern(tool.pattern, random);
  return matching ?? (lastUserText(prompt).trim() || "nothing in particular");
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
