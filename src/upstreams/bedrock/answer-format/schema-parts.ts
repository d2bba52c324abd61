import { isObject, listOf, objectOf, type JsonObject } from "../../shared/json-fields.ts";

/** Keywords whose value is schemas by name. The names are the caller's, not keywords. */
export const mapKeywords: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);

/** The schemas directly within a schema, its references not followed. */
export function childrenOf(schema: JsonObject): readonly unknown[] {
  const lists = ["anyOf", "oneOf", "allOf", "prefixItems"].flatMap(
    (keyword) => listOf(schema[keyword]) ?? [],
  );
  const named = [...mapKeywords, "patternProperties"].flatMap((keyword) =>
    Object.values(objectOf(schema[keyword]) ?? {}),
  );
  return [...lists, ...named, schema["items"], schema["additionalProperties"]];
}

/** The value in `root` of a reference such as `#/$defs/address`; undefined outside it. */
export function referenced(root: JsonObject, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  let found: unknown = root;
  for (const step of reference.slice(1).split("/").slice(1)) {
    const name = decoded(step).replaceAll("~1", "/").replaceAll("~0", "~");
    found = Array.isArray(found) ? found[Number(name)] : ownValue(found, name);
  }
  return found;
}

/**
 * Whether a schema contains itself. Without recursion, because a caller can chain any number of
 * references.
 */
export function isRecursive(root: JsonObject): boolean {
  const active = new Set<JsonObject>();
  const done = new Set<JsonObject>();
  const visits: Visit[] = [{ schema: root, isLeaving: false }];
  for (let visit = visits.pop(); visit !== undefined; visit = visits.pop()) {
    const { schema, isLeaving } = visit;
    if (isLeaving) {
      active.delete(schema);
      done.add(schema);
      continue;
    }
    if (active.has(schema)) return true;
    if (done.has(schema)) continue;
    active.add(schema);
    visits.push({ schema, isLeaving: true });
    for (const part of [targetOf(schema, root), ...childrenOf(schema)]) {
      if (isObject(part)) visits.push({ schema: part, isLeaving: false });
    }
  }
  return false;
}

/** A schema is entered before its parts and left after them. */
interface Visit {
  readonly schema: JsonObject;
  readonly isLeaving: boolean;
}

function targetOf({ $ref: reference }: JsonObject, root: JsonObject): unknown {
  return typeof reference === "string" ? referenced(root, reference) : undefined;
}

function ownValue(found: unknown, name: string): unknown {
  return isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
}

/** A step that is not valid percent-encoding is taken literally. */
function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}
