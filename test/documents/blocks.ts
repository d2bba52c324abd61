/** A command of a document, with the output that the document shows below it. */
export interface CommandBlock {
  readonly kind: "command";
  readonly line: number;
  readonly text: string;
  readonly output: string | undefined;
}

/** A file of a document: a block whose first line is a comment with its name. */
export interface FileBlock {
  readonly kind: "file";
  readonly name: string;
  readonly text: string;
}

const fence = /^( *)```(\w+)\n([\s\S]*?)^\1```$/gm;
const fileName = /^(?:#|\/\/) ([\w-]+\.[a-z]+)$/m;

/** What a reader would do, in the order of the page. `docs/style.md` has the convention. */
export function blocksOf(markdown: string): readonly (CommandBlock | FileBlock)[] {
  const found = [...markdown.matchAll(fence)].map((match) => {
    const [whole, indent = "", language = "", text = ""] = match;
    const content = text.replaceAll(new RegExp(`^${indent}`, "gm"), "");
    return { start: match.index, end: match.index + whole.length, language, content };
  });
  return found.flatMap(({ start, end, language, content }, at): (CommandBlock | FileBlock)[] => {
    const [, name] = fileName.exec(content.split("\n", 1)[0] ?? "") ?? [];
    if (name !== undefined) return [{ kind: "file", name, text: content }];
    if (language !== "sh") return [];
    const next = found[at + 1];
    const isAdjacent = next?.language === "text" && markdown.slice(end, next.start).trim() === "";
    const line = markdown.slice(0, start).split("\n").length;
    const output = isAdjacent ? next.content : undefined;
    return [{ kind: "command", line, text: content, output }];
  });
}

/** The printed text as the document describes it: `...` is any text, alone on a line any lines. */
export function patternOf(output: string): RegExp {
  const lines = output.trimEnd().split("\n");
  const pattern = lines.map((line) => (line.trim() === "..." ? "(?:.*\n)*?" : linePattern(line)));
  return new RegExp(`(?:^|\n)${pattern.join("")}`);
}

function linePattern(line: string): string {
  const words = line.trimEnd().split(/ +/);
  const pattern = words.map((word) => word.split("...").map(escaped).join(".*"));
  return `${pattern.join(" +")} *(?:\n|$)`;
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
