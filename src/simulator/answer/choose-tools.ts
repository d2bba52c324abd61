import { lastTurn, lastUserText, type Prompt, type Tool } from "./prompt.ts";
import { topicWords } from "./topic-words.ts";

/** Words in tool names that give no hint when to call one. */
const genericParts = new Set(
  "get set list find search create update fetch lookup look make run do call use tool api query".split(
    " ",
  ),
);

/** The offered tools that the answer calls, in the order they were offered. */
export function chooseTools(prompt: Prompt): readonly Tool[] {
  const { mode, only, isParallel } = prompt.toolUse;
  const offered = prompt.tools.filter((tool) => only?.includes(tool.name) ?? true);
  const [first] = offered;
  if (mode === "none" || first === undefined) return [];
  const last = lastTurn(prompt);
  if (mode === "auto" && last?.role !== "user") return nextTool(offered, last?.text ?? "");
  const text = lastUserText(prompt).toLowerCase();
  const known = callsSinceUser(prompt);
  const matching = offered.filter((tool) => isAskedFor(tool, text) && !known.has(tool.name));
  const called =
    matching.length === 0 && mode === "required" ? [answerTool(offered) ?? first] : matching;
  return isParallel ? called : called.slice(0, 1);
}

/** The tool that a result asks for in its turn: `next: <name>`. */
function nextTool(offered: readonly Tool[], result: string): readonly Tool[] {
  const [, name] = /^\s*next: (\S+)/.exec(result) ?? [];
  return offered.filter((tool) => tool.name === name);
}

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
