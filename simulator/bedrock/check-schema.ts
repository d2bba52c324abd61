import {
  isList,
  isRecord,
  type JsonRecord,
  listOf,
  parseJson,
  recordOf,
  stringOf,
} from "../json.ts";
import { type BedrockError, invalid, modelError } from "./errors.ts";
import type { CapabilityRow } from "./capabilities.ts";

/**
 * Refuses schemas that structured output does not support, of the answer and of strict tools.
 * Source: the provider's list of limitations, and its texts in reports.
 */
export function checkSchemas(body: JsonRecord, row: CapabilityRow): void {
  const { structure } = recordOf(recordOf(body["outputConfig"])["textFormat"]);
  const { schema } = recordOf(recordOf(structure)["jsonSchema"]);
  if (typeof schema === "string") checkRoot(answerSchema(schema), "output_config.format.schema");
  for (const [index, tool] of listOf(recordOf(body["toolConfig"])["tools"]).entries()) {
    const { strict, inputSchema } = recordOf(recordOf(tool)["toolSpec"]);
    const { json } = recordOf(inputSchema);
    if (strict !== true || !isRecord(json)) continue;
    const place = `tools.${index}.custom`;
    if (!row.jsonSchema) throw modelError(`${place}.strict: Extra inputs are not permitted`);
    checkRoot(json, place);
  }
}

function answerSchema(text: string): JsonRecord {
  try {
    const schema = parseJson(text);
    if (isRecord(schema)) return schema;
  } catch {
    // Refused like JSON that is no object.
  }
  throw invalid("The schema of outputConfig.textFormat is not a JSON object.");
}

/** `at` is the field's name in the model's own errors. */
function checkRoot(schema: JsonRecord, at: string): void {
  if (isRecursive(schema)) throw modelError(`${at}: Too many recursive definitions in schema`);
  checkSchema(schema, at);
}

function checkSchema(schema: unknown, at: string): void {
  if (!isRecord(schema)) throw modelError(`${at}: Schema type '${typeof schema}' is not supported`);
  const { type, $ref: reference, pattern, format } = schema;
  const types = isList(type) ? type.map(stringOf) : [stringOf(type)];
  const isObject = types.includes("object") || isRecord(schema["properties"]);
  if (isObject && schema["additionalProperties"] !== false) {
    throw refused(at, "object", "'additionalProperties' must be explicitly set to false");
  }
  for (const name of types) checkKeywords(schema, name, at);
  if (listOf(schema["enum"]).some((value) => isRecord(value) || isList(value))) {
    throw modelError(`${at}: Enum values must be strings, numbers, booleans or null`);
  }
  if (typeof reference === "string" && !reference.startsWith("#")) {
    throw modelError(`${at}: External $ref '${reference}' is not supported`);
  }
  if (typeof pattern === "string" && /\\[bB1-9]|\(\?[=!<]/.test(pattern)) {
    throw modelError(`${at}: Invalid regex in pattern field`);
  }
  if (typeof format === "string" && !formats.has(format)) {
    throw refused(at, "string", `format '${format}' is not supported`);
  }
  const parts = listOf(schema["allOf"]);
  if (parts.some((part) => recordOf(part)["$ref"] !== undefined)) {
    throw modelError(`${at}: allOf with $ref is not supported`);
  }
  for (const child of childrenOf(schema)) checkSchema(child, at);
}

function checkKeywords(schema: JsonRecord, type: string, at: string): void {
  const { minItems } = schema;
  const found = refusedKeywords.filter((keyword) => keyword in schema);
  const kind = type === "" ? "any" : type;
  if (found.length === 1) throw refused(at, kind, `property '${found[0]}' is not supported`);
  if (found.length > 1) {
    throw refused(at, kind, `properties ${found.join(", ")} are not supported`);
  }
  if (minItems !== undefined && minItems !== 0 && minItems !== 1) {
    throw refused(at, "array", "'minItems' values other than 0 or 1 are not supported");
  }
}

/** In the order of the provider's messages. */
const refusedKeywords = (
  "contains dependentRequired dependentSchemas else exclusiveMaximum exclusiveMinimum if maxItems " +
  "maxLength maxProperties maximum minLength minProperties minimum multipleOf not oneOf " +
  "patternProperties prefixItems propertyNames then uniqueItems"
).split(" ");

const formats = new Set(
  "date-time time date duration email hostname uri ipv4 ipv6 uuid".split(" "),
);

/** The direct subschemas of a schema. */
function childrenOf(schema: JsonRecord): unknown[] {
  const { items, anyOf, allOf, properties, $defs, definitions } = schema;
  const named = [properties, $defs, definitions].flatMap((map) => Object.values(recordOf(map)));
  return [...(items === undefined ? [] : [items]), ...listOf(anyOf), ...listOf(allOf), ...named];
}

function isRecursive(root: JsonRecord): boolean {
  const active = new Set<unknown>();
  const done = new Set<unknown>();
  const visit = (schema: unknown): boolean => {
    if (!isRecord(schema) || done.has(schema)) return false;
    if (active.has(schema)) return true;
    active.add(schema);
    const { $ref: reference } = schema;
    const target = typeof reference === "string" ? [resolve(root, reference)] : [];
    const found = [...childrenOf(schema), ...target].some(visit);
    active.delete(schema);
    done.add(schema);
    return found;
  };
  return visit(root);
}

function resolve(root: JsonRecord, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  const steps = reference.slice(1).split("/").slice(1).map(decodeURIComponent);
  return steps.reduce<unknown>(
    (place, step) => recordOf(place)[step.replaceAll("~1", "/").replaceAll("~0", "~")],
    root,
  );
}

function refused(at: string, type: string, what: string): BedrockError {
  return modelError(`${at}: For '${type}' type, ${what}`);
}
