import { GatewayError } from "../../domain/errors/gateway-error.ts";

/**
 * Parses a JSON body of the control plane. Refuses with 400 what parsers read differently:
 * duplicate keys, `__proto__`, text that is not Unicode. Depth and size must be bounded already.
 */
export function parseStrictJson(bytes: Uint8Array): unknown {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const value: unknown = JSON.parse(text);
    // Outside of texts, each name of a field has a colon, and nothing else has one.
    const written = text.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*"/g, "").split(":").length - 1;
    if (countFields(value) === written) return value;
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw refused("The body of your request is not valid JSON in UTF-8.", error);
  }
  throw refused("The JSON body of your request has a field more than once.");
}

function countFields(value: unknown): number {
  if (typeof value === "string") requireUnicode(value);
  if (typeof value !== "object" || value === null) return 0;
  const isList = Array.isArray(value);
  let count = 0;
  for (const [name, field] of Object.entries(value)) {
    count += isList ? 0 : 1;
    requireUnicode(name);
    if (name === "__proto__") {
      throw refused("The field '__proto__' is not allowed in the body of your request.");
    }
    count += countFields(field);
  }
  return count;
}

/** Half of a surrogate pair would change when it is stored. */
function requireUnicode(text: string): void {
  if (!text.isWellFormed()) throw new TypeError("half of a surrogate pair");
}

function refused(message: string, cause?: unknown): GatewayError {
  return new GatewayError("invalid_json", { message, cause });
}
