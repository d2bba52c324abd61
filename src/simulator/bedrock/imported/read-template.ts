import { invalid, type BedrockError } from "../bedrock-error.ts";

/** The supported prompt templates of imported models. */
export type Template = "llama" | "mistral" | "qwen";

export interface TemplateTurn {
  readonly role: "system" | "user" | "assistant";
  readonly text: string;
}

/**
 * Parses a prompt into its turns, of which the last is the assistant's open one. The provider
 * accepts any text; the simulator refuses prompts that do not follow the template.
 * Throws `BedrockError`.
 */
export function readTemplate(prompt: string, template: Template): readonly TemplateTurn[] {
  const turns = template === "mistral" ? readMistral(prompt) : readMarked(prompt, marks[template]);
  checkOrder(turns);
  return turns;
}

interface Marks {
  readonly start: string;
  readonly beforeRole: string;
  readonly behindRole: string;
  readonly end: string;
  readonly betweenTurns: string;
}

const marks = {
  llama: {
    start: "<|begin_of_text|>",
    beforeRole: "<|start_header_id|>",
    behindRole: "<|end_header_id|>\n\n",
    end: "<|eot_id|>",
    betweenTurns: "",
  },
  qwen: {
    start: "",
    beforeRole: "<|im_start|>",
    behindRole: "\n",
    end: "<|im_end|>",
    betweenTurns: "\n",
  },
} as const satisfies Readonly<Record<string, Marks>>;

function readMarked(prompt: string, form: Marks): readonly TemplateTurn[] {
  const turns: TemplateTurn[] = [];
  let rest = after(prompt, form.start);
  for (;;) {
    rest = after(rest, form.beforeRole);
    const role = readRole(rest.slice(0, Math.max(0, rest.indexOf(form.behindRole))));
    rest = after(rest, `${role}${form.behindRole}`);
    const end = rest.indexOf(form.end);
    const text = end < 0 ? rest : rest.slice(0, end);
    if (/<\|\w+\|>/.test(text)) throw malformedPrompt("a turn holds a token of the template");
    turns.push({ role, text });
    if (end < 0) return turns;
    rest = after(rest.slice(end), `${form.end}${form.betweenTurns}`);
  }
}

function readRole(name: string): TemplateTurn["role"] {
  if (name === "system" || name === "user" || name === "assistant") return name;
  throw malformedPrompt("a turn has no known role");
}

function readMistral(prompt: string): readonly TemplateTurn[] {
  const turns: TemplateTurn[] = [];
  for (const pair of after(prompt, "<s>").split("</s>")) {
    const rest = after(pair, "[INST] ");
    const end = rest.indexOf(" [/INST]");
    if (end < 0) throw malformedPrompt("an instruction does not end");
    const answer = rest.slice(end + " [/INST]".length);
    turns.push({ role: "user", text: rest.slice(0, end) });
    turns.push({ role: "assistant", text: answer.replace(/^ /, "") });
  }
  const isBroken = turns.some(({ text }) => /\[\/?INST\]|<\/?s>/.test(text));
  if (isBroken) throw malformedPrompt("a turn holds a token of the template");
  return turns;
}

function checkOrder(turns: readonly TemplateTurn[]): void {
  const spoken = turns[0]?.role === "system" ? turns.slice(1) : turns;
  const isInOrder = spoken.every(({ role }, index) => role === (index % 2 ? "assistant" : "user"));
  if (!isInOrder) throw malformedPrompt("user and assistant do not take turns");
  if (spoken.at(-1)?.role !== "assistant") throw malformedPrompt("it does not ask for an answer");
}

function after(text: string, start: string): string {
  if (text.startsWith(start)) return text.slice(start.length);
  throw malformedPrompt(`${JSON.stringify(start)} is missing`);
}

function malformedPrompt(why: string): BedrockError {
  return invalid(`The simulator cannot read the prompt by the model's template: ${why}.`);
}
