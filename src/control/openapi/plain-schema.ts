type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The same schema for the document: it refers to definitions of the document, and uses only what
 * validators and client generators in other languages understand.
 */
export function asPlain(made: object): JsonObject;
export function asPlain(made: object): unknown {
  const text = JSON.stringify(made).replaceAll('"#/$defs/', '"#/components/schemas/');
  const shared: unknown = JSON.parse(text, plainPart);
  return shared;
}

/** Called for every value, the innermost first. */
function plainPart(name: string, value: unknown): unknown {
  if (name === "pattern" && typeof value === "string") return portablePattern(value);
  if (isAnyJsonName(name)) return undefined;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if ("$ref" in value && isAnyJsonName(String(value.$ref))) return {};
  if (!("type" in value) || !Array.isArray(value.type) || value.type.length < 3) return value;
  // Generators take one type, which may also be null.
  const { type, ...rest } = value;
  return { ...rest, anyOf: type.map((each: unknown) => ({ type: each })) };
}

/** Arbitrary JSON is a schema without a name that refers to itself. */
function isAnyJsonName(name: string): boolean {
  return /(?:^|\/)__schema[0-9]+$/.test(name);
}

/** Replaces Unicode classes by ranges, because most languages do not know them by name. */
function portablePattern(pattern: string): string {
  const controls = String.raw`\u0000-\u001f\u007f-\u009f`;
  return pattern
    .replaceAll(String.raw`\P{Cc}`, `[^${controls}]`)
    .replaceAll(String.raw`\p{Cc}`, controls)
    .replaceAll(String.raw`\p{Zl}`, String.raw`\u2028`)
    .replaceAll(String.raw`\p{Zp}`, String.raw`\u2029`);
}
