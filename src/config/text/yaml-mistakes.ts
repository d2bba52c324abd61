import { endOfLine, findSigns } from "./yaml-signs.ts";

/** A mistake in plain words, at the place where it was made. Never quotes the file. */
export interface Mistake {
  readonly offset: number;
  readonly message: string;
}

/**
 * Finds the mistake behind a syntax error that the parser noticed at an offset, which is often lines
 * below. Undefined if it is none of the usual ones.
 */
export function findMistake(text: string, noticed: number): Mistake | undefined {
  const lines = readLines(text);
  const at = lines.findLastIndex(({ start }) => start <= noticed);
  return (
    signMistake(text, noticed) ??
    keyMistake(lines[at]) ??
    // An indented line after a value is noticed in the value.
    indentMistake(lines, at) ??
    indentMistake(lines, at + 1)
  );
}

function signMistake(text: string, noticed: number): Mistake | undefined {
  const { quotes, brackets, strays } = findSigns(text);
  const quote = quotes.find(
    ({ from, to = text.length }) =>
      from <= noticed && noticed <= endOfLine(text, to) && text.slice(from, to).includes("\n"),
  );
  if (quote !== undefined) {
    return { offset: quote.from, message: "the quote that opens here is not closed on its line" };
  }
  const open = quotes.find(({ to }) => to === undefined);
  if (open !== undefined) {
    return { offset: open.from, message: "the quote that opens here is not closed" };
  }
  const stray = strays.find((offset) => noticed <= offset && offset <= endOfLine(text, noticed));
  if (stray !== undefined) {
    return { offset: stray, message: "a bracket is closed here that was not opened" };
  }
  const bracket = brackets.findLast(({ from, to }) => from < noticed && to === undefined);
  return bracket && { offset: bracket.from, message: "the bracket that opens here is not closed" };
}

interface Line {
  readonly number: number;
  /** Offset of its first character. */
  readonly start: number;
  /** Spaces before the text, and before each text after a dash. */
  readonly indents: readonly number[];
  readonly hasDash: boolean;
  /** Without indent, dashes and comment. */
  readonly body: string;
}

/** Lines with text, except those inside texts of several lines. */
function readLines(text: string): readonly Line[] {
  const lines: Line[] = [];
  let start = 0;
  for (const [index, line] of text.split("\n").entries()) {
    const [lead = ""] = /^ *(?:- +)*/.exec(line) ?? [];
    const body = line
      .slice(lead.length)
      .replace(/(?:^|\s)#.*$/, "")
      .trimEnd();
    if (body !== "" && !/^(?:---|%)/.test(line)) {
      const dashes = [...lead.matchAll(/-/g)].map((dash) => dash.index);
      const hasDash = dashes.length > 0 || body === "-";
      lines.push({
        number: index + 1,
        start,
        indents: [...dashes, lead.length],
        hasDash,
        body,
      });
    }
    start += line.length + 1;
  }
  return lines;
}

/** A line without a proper colon or dash. */
function keyMistake(line: Line | undefined): Mistake | undefined {
  if (line === undefined) return undefined;
  const { body, indents, start } = line;
  const offset = start + (indents.at(-1) ?? 0);
  if (/^-[A-Za-z_]/.test(body)) {
    return { offset, message: "the dash of an item needs a space after it" };
  }
  if (/:(?:\s|$)/.test(body) || /^["'[{}\]|>&*!-]/.test(body)) return undefined;
  if (/^[\w.-]+:(?!\/\/)/.test(body)) {
    return { offset, message: "the colon after the key needs a space after it" };
  }
  return { offset, message: "a colon is missing after the key: write `key: value`" };
}

/** A line whose indentation fits none of the lines above. */
function indentMistake(lines: readonly Line[], at: number): Mistake | undefined {
  const line = lines[at];
  const above = lines[at - 1];
  if (line === undefined || above === undefined) return undefined;
  const indent = line.indents[0] ?? 0;
  const offset = line.start + indent;
  const deepest = above.indents.at(-1) ?? 0;
  if (indent > deepest) {
    if (/:$|^-$/.test(above.body)) return undefined;
    const message =
      `is indented more than line ${above.number}, which has a value already: ` +
      "give both the same indentation";
    return { offset, message };
  }
  const levels = levelsAbove(lines, at);
  const same = levels.find((level) => level.indent === indent);
  if (same === undefined) {
    const known = levels.map((level) => level.indent);
    const less = known.find((each) => each < indent);
    const more = known.findLast((each) => each > indent);
    const either = [less, more].filter((each) => each !== undefined).join(" or ");
    const message = `is indented by ${spaces(indent)}, but the lines above by ${either}`;
    return { offset, message };
  }
  if (!same.isDash || line.hasDash) return undefined;
  const message = `is indented like the dash of the item above; keys of the item need ${spaces(deepest)}`;
  return { offset, message };
}

interface Level {
  readonly indent: number;
  readonly isDash: boolean;
}

/** The indentations that a line may have, from the innermost. */
function levelsAbove(lines: readonly Line[], at: number): readonly Level[] {
  const levels: Level[] = [];
  let innermost = Infinity;
  for (const { indents } of lines.slice(0, at).toReversed()) {
    for (const [index, indent] of [...indents.entries()].toReversed()) {
      if (indent >= innermost) continue;
      innermost = indent;
      levels.push({ indent, isDash: index < indents.length - 1 });
    }
    if (innermost === 0) break;
  }
  return levels;
}

function spaces(count: number): string {
  return count === 1 ? "1 space" : `${count} spaces`;
}
