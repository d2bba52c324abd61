/** A pair of quotes or brackets, as offsets; `to` is undefined if the second one is missing. */
export interface Pair {
  readonly from: number;
  to: number | undefined;
}

export interface Signs {
  readonly quotes: readonly Pair[];
  readonly brackets: readonly Pair[];
  /** Closing brackets that close none. */
  readonly strays: readonly number[];
}

/** Characters after which a value begins, in brackets or in a block. */
const openers = new Set([":", "-", "?", ",", "[", "{"]);

/**
 * Finds quotes and brackets also in a text that is not YAML. Those inside plain text, such as an
 * apostrophe, are not signs; nor are those in comments and block texts.
 */
export function findSigns(text: string): Signs {
  const quotes: Pair[] = [];
  const brackets: Pair[] = [];
  const open: Pair[] = [];
  const strays: number[] = [];
  let offset = 0;
  /** The last character of the line that is no space. */
  let last = "";
  while (offset < text.length) {
    const sign = text.charAt(offset);
    const isStart = last === "" || openers.has(last);
    if (sign === "\n") {
      offset = isBlockText(text, offset) ? endOfBlockText(text, offset) : offset + 1;
      last = "";
      continue;
    }
    if (sign === "#" && /^\s?$/.test(text.charAt(offset - 1))) {
      offset = endOfLine(text, offset);
      continue;
    }
    if ((sign === '"' || sign === "'") && isStart) {
      const to = endOfQuote(text, offset);
      quotes.push({ from: offset, to });
      offset = to ?? text.length;
    } else if ((sign === "[" || sign === "{") && (isStart || open.length > 0)) {
      const pair = { from: offset, to: undefined };
      open.push(pair);
      brackets.push(pair);
    } else if (sign === "]" || sign === "}") {
      const pair = open.pop();
      if (pair !== undefined) pair.to = offset;
      else if (isStart || last === '"' || last === "'") strays.push(offset);
    }
    if (!/\s/.test(sign)) last = sign;
    offset += 1;
  }
  return { quotes, brackets, strays };
}

function endOfQuote(text: string, from: number): number | undefined {
  const quote = text.charAt(from);
  for (let offset = from + 1; offset < text.length; offset += 1) {
    if (quote === '"' && text[offset] === "\\") offset += 1;
    else if (text[offset] === quote) {
      if (quote === '"' || text[offset + 1] !== "'") return offset;
      offset += 1;
    }
  }
  return undefined;
}

export function endOfLine(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  return end === -1 ? text.length : end;
}

/** Whether the line that ends here begins a text of several lines, with `|` or `>`. */
function isBlockText(text: string, end: number): boolean {
  return /[:-] [|>][+\d-]*\s*$/.test(text.slice(text.lastIndexOf("\n", end - 1) + 1, end));
}

function endOfBlockText(text: string, end: number): number {
  const indent = indentAt(text, text.lastIndexOf("\n", end - 1) + 1);
  let start = end + 1;
  while (start < text.length) {
    const lineEnd = endOfLine(text, start);
    const isBlank = text.slice(start, lineEnd).trim() === "";
    if (!isBlank && indentAt(text, start) <= indent) break;
    start = lineEnd + 1;
  }
  return start;
}

function indentAt(text: string, start: number): number {
  return /^ */.exec(text.slice(start, endOfLine(text, start)))?.[0].length ?? 0;
}
