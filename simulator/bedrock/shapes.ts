import { isList, isRecord } from "../json.ts";
import { BedrockError, invalid } from "./errors.ts";

/** The type of a request's member: a subset of the provider's service model. */
export type Shape =
  | {
      readonly kind: "string";
      readonly length?: Bounds;
      readonly pattern?: RegExp;
      readonly values?: readonly string[];
    }
  | {
      readonly kind: "integer" | "float";
      readonly range?: Bounds;
      readonly values?: readonly number[];
    }
  | { readonly kind: "boolean" | "document" | "blob" }
  | { readonly kind: "list"; readonly of: Shape; readonly length?: Bounds }
  | { readonly kind: "map"; readonly key: Shape; readonly value: Shape; readonly length?: Bounds }
  | { readonly kind: "structure"; readonly members: Members; readonly required: readonly string[] }
  /** Exactly one of the members. */
  | { readonly kind: "union"; readonly members: Members };

type Members = Readonly<Record<string, Shape>>;

/** Lowest and highest, inclusive. */
type Bounds = readonly [number | undefined, number | undefined];

/**
 * Throws `BedrockError` if a value does not match the shape: at once for a wrong type, else with
 * all violated constraints. Unknown members are refused too, to show misspelt fields; the provider
 * refuses them in unions only.
 */
export function checkShape(value: unknown, shape: Shape, at = ""): void {
  const violations: string[] = [];
  visit({ value, at }, shape, violations);
  if (violations.length === 0) return;
  const count = `${violations.length} validation error${violations.length === 1 ? "" : "s"}`;
  throw invalid(`${count} detected: ${violations.join("; ")}`);
}

interface Place {
  readonly value: unknown;
  readonly at: string;
}

function visit({ value, at }: Place, shape: Shape, violations: string[]): void {
  const violate = (constraint: string): void => {
    const shown = `${value === null ? "null" : `'${shownValue(value)}'`} at '${at}'`;
    violations.push(`Value ${shown} failed to satisfy constraint: ${constraint}`);
  };
  switch (shape.kind) {
    case "document":
      return;
    case "boolean":
      if (typeof value !== "boolean") throw wrongType(value, "a Boolean");
      return;
    case "blob":
      if (typeof value !== "string") throw wrongType(value, "a Blob");
      if (!/^[A-Za-z0-9+/]*={0,2}$/.test(value)) {
        throw new BedrockError("SerializationException", "A Blob must be base64");
      }
      return;
    case "integer":
    case "float":
      if (typeof value !== "number") throw wrongType(value, `a ${capital(shape.kind)}`);
      if (shape.kind === "integer" && !Number.isInteger(value)) {
        throw new BedrockError("SerializationException", `${value} is not an integer`);
      }
      checkBounds(value, shape.range, (limit) => violate(`Member must have value ${limit}`));
      if (shape.values?.includes(value) === false) {
        violate(`Member must be one of ${shape.values.join(", ")}`);
      }
      return;
    case "string":
      if (typeof value !== "string") throw wrongType(value, "a String");
      checkText(value, shape, violate);
      return;
    case "list":
      if (!isList(value)) throw wrongType(value, "a List");
      checkBounds(value.length, shape.length, (limit) =>
        violate(`Member must have length ${limit}`),
      );
      for (const [index, item] of value.entries()) {
        visit({ value: item, at: `${at}.${index + 1}.member` }, shape.of, violations);
      }
      return;
    case "map":
      visitMap({ value, at }, shape, { violate, violations });
      return;
    case "structure":
    case "union":
      visitMembers({ value, at }, shape, violations);
      return;
  }
}

function checkText(
  value: string,
  shape: Extract<Shape, { kind: "string" }>,
  violate: (constraint: string) => void,
): void {
  checkBounds(value.length, shape.length, (limit) => violate(`Member must have length ${limit}`));
  if (shape.values !== undefined && !shape.values.includes(value)) {
    violate(`Member must satisfy enum value set: [${shape.values.join(", ")}]`);
  }
  if (shape.pattern !== undefined && !shape.pattern.test(value)) {
    const pattern = shape.pattern.source.replace(/^\^(.*)\$$/, "$1");
    violate(`Member must satisfy regular expression pattern: ${pattern}`);
  }
}

function visitMap(
  { value, at }: Place,
  shape: Extract<Shape, { kind: "map" }>,
  found: { readonly violate: (constraint: string) => void; readonly violations: string[] },
): void {
  if (!isRecord(value)) throw wrongType(value, "a Map");
  const entries = Object.entries(value);
  checkBounds(entries.length, shape.length, (limit) =>
    found.violate(`Member must have length ${limit}`),
  );
  for (const [key, item] of entries) {
    visit({ value: key, at: `${at}.key` }, shape.key, found.violations);
    visit({ value: item, at: `${at}.${key}.member` }, shape.value, found.violations);
  }
}

function visitMembers(
  { value, at }: Place,
  shape: Extract<Shape, { kind: "structure" | "union" }>,
  violations: string[],
): void {
  if (!isRecord(value)) throw wrongType(value, "a Structure");
  const inside = (name: string): string => (at === "" ? name : `${at}.${name}`);
  // Members that are null count as absent.
  const given = Object.entries(value).filter(([, member]) => member !== null);
  const unknown = given.find(([name]) => !Object.hasOwn(shape.members, name));
  if (unknown !== undefined) {
    const key = `#/${at.replaceAll(".", "/")}: extraneous key [${unknown[0]}] is not permitted`;
    throw invalid(`Malformed input request: ${key}, please reformat your input and try again.`);
  }
  if (shape.kind === "union" && given.length !== 1) {
    const constraint = "Member must have exactly one of its members set";
    violations.push(`Value at '${at}' failed to satisfy constraint: ${constraint}`);
    return;
  }
  const required = shape.kind === "union" ? [] : shape.required;
  for (const name of required) {
    if (given.some(([present]) => present === name)) continue;
    violations.push(
      `Value null at '${inside(name)}' failed to satisfy constraint: Member must not be null`,
    );
  }
  for (const [name, member] of given) {
    const memberShape = shape.members[name];
    if (memberShape !== undefined) {
      visit({ value: member, at: inside(name) }, memberShape, violations);
    }
  }
}

function checkBounds(
  size: number,
  bounds: Bounds | undefined,
  violate: (limit: string) => void,
): void {
  const [lowest = Number.NEGATIVE_INFINITY, highest = Number.POSITIVE_INFINITY] = bounds ?? [];
  if (size < lowest) violate(`greater than or equal to ${lowest}`);
  if (size > highest) violate(`less than or equal to ${highest}`);
}

function shownValue(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}

function wrongType(value: unknown, wanted: string): BedrockError {
  const type =
    value === null || value === undefined ? "NULL" : isList(value) ? "LIST" : typeof value;
  const message = `${type.toUpperCase()}_VALUE cannot be converted to ${wanted}`;
  return new BedrockError("SerializationException", message);
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

export const anything: Shape = { kind: "document" };
const blob: Shape = { kind: "blob" };
export const flag: Shape = { kind: "boolean" };
export const anyText: Shape = { kind: "string" };
export const someText: Shape = { kind: "string", length: [1, undefined] };
const cachePoint = structure({ "type!": choice("default"), ttl: choice("5m", "1h") });
const toolName: Shape = { kind: "string", length: [1, 64], pattern: /^[a-zA-Z0-9_-]+$/ };
const toolUseId: Shape = { kind: "string", length: [1, 64], pattern: /^[a-zA-Z0-9_.:-]+$/ };
const bytesAlone: Members = { bytes: blob };

const image = structure({
  "format!": choice("png", "jpeg", "gif", "webp"),
  "source!": union(bytesAlone),
});
const file = structure({
  format: choice("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"),
  "name!": { kind: "string", length: [1, 200] },
  "source!": union({
    ...bytesAlone,
    text: someText,
    content: { kind: "list", of: union({ text: someText }), length: [1, undefined] },
  }),
});
const toolResult = structure({
  "toolUseId!": toolUseId,
  "content!": list(union({ text: anyText, json: anything, image, document: file })),
  status: choice("success", "error"),
});

const contentBlock = union({
  text: anyText,
  image,
  document: file,
  toolUse: structure({
    "toolUseId!": toolUseId,
    "name!": toolName,
    "input!": anything,
  }),
  toolResult,
  cachePoint,
  reasoningContent: union({
    reasoningText: structure({ "text!": anyText, signature: anyText }),
    redactedContent: blob,
  }),
});

const tool = union({
  toolSpec: structure({
    "name!": toolName,
    description: someText,
    "inputSchema!": union({ json: anything }),
    strict: flag,
  }),
  cachePoint,
});

const conversation: Members = {
  messages: list(
    structure({ "role!": choice("user", "assistant"), "content!": list(contentBlock) }),
  ),
  system: list(union({ text: someText, cachePoint })),
  toolConfig: structure({
    "tools!": { kind: "list", of: tool, length: [1, undefined] },
    toolChoice: union({
      auto: structure({}),
      any: structure({}),
      tool: structure({ "name!": toolName }),
    }),
  }),
  additionalModelRequestFields: anything,
};

const jsonSchema = structure({ "schema!": anyText, name: anyText, description: anyText });

/** The body of Converse and, with one more field, of ConverseStream. */
export function converseShape(isStreamed: boolean): Shape {
  return structure({
    ...conversation,
    inferenceConfig: structure({
      maxTokens: { kind: "integer", range: [1, undefined] },
      temperature: { kind: "float", range: [0, 1] },
      topP: { kind: "float", range: [0, 1] },
      stopSequences: { kind: "list", of: someText, length: [0, 2500] },
    }),
    guardrailConfig: structure({
      "guardrailIdentifier!": {
        kind: "string",
        length: [0, 2048],
        pattern:
          /^(?:[a-z0-9]+|arn:aws(?:-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:guardrail\/[a-z0-9]+)$/,
      },
      "guardrailVersion!": { kind: "string", pattern: /^(?:[1-9][0-9]{0,7}|DRAFT)$/ },
      trace: choice("enabled", "disabled", "enabled_full"),
      ...(isStreamed ? { streamProcessingMode: choice("sync", "async") } : {}),
    }),
    additionalModelResponseFieldPaths: {
      kind: "list",
      of: { kind: "string", length: [1, 256] },
      length: [0, 10],
    },
    requestMetadata: {
      kind: "map",
      key: metadataText(1),
      value: metadataText(0),
      length: [1, 16],
    },
    performanceConfig: structure({ latency: choice("standard", "optimized") }),
    serviceTier: structure({ "type!": choice("priority", "default", "flex", "reserved") }),
    outputConfig: structure({
      textFormat: structure({
        "type!": choice("json_schema"),
        "structure!": union({ jsonSchema }),
      }),
      effort: choice("low", "medium", "high", "xhigh", "max"),
    }),
  });
}

export const countTokensShape: Shape = structure({
  "input!": union({
    converse: structure(conversation),
    invokeModel: structure({ "body!": blob }),
  }),
});

function metadataText(shortest: number): Shape {
  return { kind: "string", length: [shortest, 256], pattern: /^[a-zA-Z0-9\s:_@$#=/+,.-]*$/ };
}

/** Members whose names end in `!` are required. */
export function structure(named: Members): Shape {
  const required = Object.keys(named).filter((name) => name.endsWith("!"));
  const members = Object.entries(named).map(
    ([name, shape]) => [name.replace("!", ""), shape] as const,
  );
  return {
    kind: "structure",
    members: Object.fromEntries(members),
    required: required.map((name) => name.slice(0, -1)),
  };
}

function union(members: Members): Shape {
  return { kind: "union", members };
}

export function list(of: Shape): Shape {
  return { kind: "list", of };
}

export function choice(...values: readonly string[]): Shape {
  return { kind: "string", values };
}
