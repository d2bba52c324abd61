import { GatewayError } from "../../domain/errors/gateway-error.ts";

/**
 * Parses a JSON body of the control plane. Refuses with 400 what parsers read differently: duplicate
 * keys, `__proto__`, text that is not Unicode. Depth and size must be bounded already.
 */
export function parseStrictJson(bytes: Uint8Array): unknown {
  const text = decode(bytes);
  inspect(text);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw notJson(error);
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw notJson(error);
  }
}

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Names of the object that is open, or undefined for an array. */
type OpenValue = Set<string> | undefined;

/**
 * Scans a JSON text once, without recursion. Text that is not JSON may pass: the parser refuses it.
 */
function inspect(text: string): void {
  const open: OpenValue[] = [];
  // Whether the next string is a name: after `{`, and after `,` in an object.
  let isNameNext = false;
  for (let position = 0; position < text.length; position += 1) {
    switch (text.charCodeAt(position)) {
      case openBrace:
      case openBracket:
        isNameNext = text.charCodeAt(position) === openBrace;
        open.push(isNameNext ? new Set() : undefined);
        break;
      case closeBrace:
      case closeBracket:
        open.pop();
        isNameNext = false;
        break;
      case comma:
        isNameNext = open.at(-1) !== undefined;
        break;
      case quote: {
        const start = position;
        position = endOfString(text, start);
        const literal = text.slice(start, position + 1);
        requireUnicode(literal);
        if (isNameNext) addName(open.at(-1), readString(literal));
        isNameNext = false;
        break;
      }
    }
  }
}

/** Position of the quote that closes the string opened at `start`. */
function endOfString(text: string, start: number): number {
  for (let position = start + 1; position < text.length; position += 1) {
    const code = text.charCodeAt(position);
    if (code === quote) return position;
    if (code === backslash) position += 1;
  }
  throw notJson(undefined);
}

/** An escaped half of a surrogate pair would change when it is stored. */
function requireUnicode(literal: string): void {
  if (!/\\u[dD]/.test(literal) || readString(literal).isWellFormed()) return;
  throw notJson(undefined);
}

function addName(names: OpenValue, name: string): void {
  if (name === "__proto__" || names?.has(name) === true) throw refusedName(name);
  names?.add(name);
}

function readString(literal: string): string {
  if (!literal.includes("\\")) return literal.slice(1, -1);
  try {
    return String(JSON.parse(literal));
  } catch (error) {
    throw notJson(error);
  }
}

function refusedName(name: string): GatewayError {
  const shown = name.slice(0, 100);
  return new GatewayError("invalid_json", {
    message:
      name === "__proto__"
        ? "The field '__proto__' is not allowed in the body of your request."
        : `The JSON body of your request has the field '${shown}' more than once.`,
    param: shown,
  });
}

function notJson(cause: unknown): GatewayError {
  return new GatewayError("invalid_json", {
    message: "The body of your request is not valid JSON in UTF-8.",
    cause,
  });
}
