/** What a PromQL expression reads. */
export interface ExpressionReads {
  readonly selectors: readonly Selector[];
  /** Labels that it groups or joins by. */
  readonly groupings: readonly string[];
}

export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

export interface Matcher {
  readonly label: string;
  readonly value: string;
}

const groupingWords = new Set(["by", "without", "on", "ignoring", "group_left", "group_right"]);
const otherWords = new Set(["and", "or", "unless", "offset", "bool"]);
const token =
  /\s+|"(?:[^"\\]|\\.)*"|\[\w+(?::\w*)?\]|[A-Za-z_:][\w:]*|[\d.]+[a-z]*|=~|!~|!=|==|>=|<=|[-+*/%^<>=(){},]/y;

/** Throws on what is not a token, and on brackets that do not match. `promtool` checks the rest. */
export function readExpression(expression: string): ExpressionReads {
  const tokens = tokensOf(expression);
  const selectors: Selector[] = [];
  const groupings: string[] = [];
  let depth = 0;
  for (let at = 0; at < tokens.length; at += 1) {
    const [word = "", next] = tokens.slice(at, at + 2);
    if (word === "(") depth += 1;
    if (word === ")") depth -= 1;
    if (depth < 0) break;
    if (!/^[A-Za-z_:]/.test(word) || otherWords.has(word)) continue;
    if (groupingWords.has(word) && next === "(") {
      const end = tokens.indexOf(")", at);
      groupings.push(...tokens.slice(at + 2, end).filter((each) => each !== ","));
      at = end;
    } else if (next === "{") {
      const end = tokens.indexOf("}", at);
      selectors.push({ metric: word, matchers: matchersOf(tokens.slice(at + 2, end)) });
      at = end;
    } else if (next !== "(" && !groupingWords.has(tokens[at + 1] ?? "")) {
      selectors.push({ metric: word, matchers: [] });
    }
  }
  if (depth !== 0) throw new Error(`brackets do not match: ${expression}`);
  return { selectors, groupings };
}

function tokensOf(expression: string): readonly string[] {
  const tokens: string[] = [];
  token.lastIndex = 0;
  while (token.lastIndex < expression.length) {
    const at = token.lastIndex;
    const [text] = token.exec(expression) ?? [];
    if (text === undefined) throw new Error(`no token at ${at}: ${expression.slice(at)}`);
    if (text.trim() !== "") tokens.push(text);
  }
  return tokens;
}

/** Of `label`, operator, `"value"` and commas. */
function matchersOf(tokens: readonly string[]): readonly Matcher[] {
  return tokens.flatMap((label, at) => {
    const value = tokens[at + 2];
    const isLabel = /^\w+$/.test(label) && value?.startsWith('"') === true;
    return isLabel ? [{ label, value: value.slice(1, -1) }] : [];
  });
}
