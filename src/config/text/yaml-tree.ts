import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseDocument,
} from "yaml";
import { isObject } from "../../domain/json-object.ts";
import { hidePlaceholders } from "./interpolate.ts";
import type { ConfigPath } from "../../settings/values.ts";
import type { ConfigProblem } from "../problems/problem.ts";
import { syntaxErrors } from "./yaml-syntax.ts";

export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface YamlTree {
  /** Maps, lists, texts, numbers, booleans and nulls, without shared references. */
  readonly value: Readonly<Record<string, unknown>>;
  /** Position of a key or an item, or of the nearest ancestor of an absent one. */
  readonly locate: (path: ConfigPath) => Position;
}

export type YamlResult =
  | { readonly ok: true; readonly tree: YamlTree }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

/** A larger file is not a configuration, and would stall the process. */
const mostCharacters = 1024 * 1024;
const mostValues = 100_000;
const deepestLevel = 32;
/** A few lines of nested aliases can expand to gigabytes. */
const mostAliasedValues = 10_000;
const mostSyntaxProblems = 20;

export interface YamlOptions {
  /** `<<` takes in the keys of another map, as in YAML 1.1. */
  readonly merge?: boolean;
}

/** Reads one YAML 1.2 document that is a map. Never throws. */
export function parseYaml(source: string, options: YamlOptions = {}): YamlResult {
  const text = source.startsWith("\uFEFF") ? source.slice(1) : source;
  if (text.length > mostCharacters) return refuse(`is longer than ${mostCharacters} characters`);
  try {
    return readDocument(text, options);
  } catch (error) {
    if (error instanceof ReferenceError) {
      return refuse("has an alias without an anchor before it, or expands too many aliases");
    }
    return refuse(error instanceof TreeTooLarge ? error.message : "cannot be read as YAML");
  }
}

function readDocument(text: string, { merge = false }: YamlOptions): YamlResult {
  const lines = new LineCounter();
  const hidden = hidePlaceholders(text);
  const document: Document = parseDocument(hidden.text, {
    lineCounter: lines,
    // Pretty errors quote the source, which may hold secrets.
    prettyErrors: false,
    merge,
    stringKeys: true,
    resolveKnownTags: false,
    logLevel: "error",
  });
  const locate = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const problems = syntaxProblems(document, hidden.text, locate);
  if (problems.length > 0) return { ok: false, problems };
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null)) {
    return refuse("is empty");
  }
  const plain: unknown = document.toJS({ maxAliasCount: mostAliasedValues });
  const value = copyTree(plain, hidden.restore);
  if (!isObject(value)) return refuse("must be a map of keys and values, such as 'listen: ...'");
  return { ok: true, tree: { value, locate: (path) => locate(findOffset(document, path)) } };
}

function syntaxProblems(
  document: Document,
  text: string,
  locate: (offset: number) => Position,
): readonly ConfigProblem[] {
  const quoteAt = document.errors[0]?.code === "MISSING_CHAR" ? openQuoteIn(text) : undefined;
  if (quoteAt !== undefined) {
    return [{ path: "", ...locate(quoteAt), message: "the quote that opens here is not closed" }];
  }
  // One mistake often causes several errors on the same line.
  const byLine = new Map<number, ConfigProblem>();
  const tabs = document.errors.filter(({ code }) => code === "TAB_AS_INDENT");
  for (const error of tabs.length > 0 ? tabs : [...document.errors, ...document.warnings]) {
    const position = locate(error.pos[0]);
    const isConsequence = error.code === "UNEXPECTED_TOKEN" && byLine.size > 0;
    if (isConsequence || byLine.has(position.line) || byLine.size >= mostSyntaxProblems) continue;
    byLine.set(position.line, { path: "", ...position, message: syntaxErrors[error.code] });
  }
  const version = document.directives?.yaml;
  if (version?.explicit === true && version.version !== "1.2") {
    byLine.set(1, { path: "", line: 1, column: 1, message: "must be YAML 1.2" });
  }
  return [...byLine.values()];
}

/** The offset of a quote without an end; the parser notices it only at the end of the file. */
function openQuoteIn(text: string): number | undefined {
  let offset = 0;
  for (const lexeme of new Lexer().lex(text)) {
    // Marks of the lexer are not in the text.
    if (!text.startsWith(lexeme, offset)) continue;
    const quote = /^["']/.exec(lexeme)?.[0];
    if (quote !== undefined && (lexeme === quote || !lexeme.endsWith(quote))) return offset;
    offset += lexeme.length;
  }
  return undefined;
}

function refuse(message: string): YamlResult {
  return { ok: false, problems: [{ path: "", line: 1, column: 1, message }] };
}

class TreeTooLarge extends Error {}

/** Copies the parsed tree and expands its aliases, within limits; `restore` is for each text. */
function copyTree(tree: unknown, restore: (text: string) => string): unknown {
  let values = 0;
  const copy = (value: unknown, level: number): unknown => {
    values += 1;
    if (level > deepestLevel) {
      throw new TreeTooLarge("nests too deeply, or an alias contains itself");
    }
    if (values > mostValues) throw new TreeTooLarge("has too many values");
    if (typeof value === "string") return restore(value);
    if (Array.isArray(value)) return value.map((item) => copy(item, level + 1));
    if (!isObject(value)) return value;
    const fields = Object.entries(value);
    return Object.fromEntries(fields.map(([key, item]) => [restore(key), copy(item, level + 1)]));
  };
  return copy(tree, 0);
}

/** Offset of the key or item at the end of a path, as far as the path leads. */
function findOffset(document: Document, path: ConfigPath): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step);
      if (pair === undefined) return offset;
      offset = startOf(pair.key) ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof step === "number") {
      node = node.items[step];
      offset = startOf(node) ?? offset;
    } else {
      return offset;
    }
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
