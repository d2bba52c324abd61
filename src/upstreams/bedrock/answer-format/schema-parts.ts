import { isObject, listOf, objectOf, type JsonObject } from "../../shared/json-fields.ts";

/** Keywords whose value is schemas by name. The names are the caller's, and no keywords. */
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

/** What a reference such as `#/$defs/place` names in `root`; undefined outside it. */
export function referenced(root: JsonObject, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  let place: unknown = root;
  for (const step of reference.slice(1).split("/").slice(1)) {
    const name = decoded(step).replaceAll("~1", "/").replaceAll("~0", "~");
    place = Array.isArray(place) ? place[Number(name)] : ownValue(place, name);
  }
  return place;
}

/** Whether a schema is part of itself. */
export function isRecursive(root: JsonObject): boolean {
  const active = new Set<unknown>();
  const done = new Set<unknown>();
  const visit = (schema: unknown): boolean => {
    if (!isObject(schema) || done.has(schema)) return false;
    if (active.has(schema)) return true;
    active.add(schema);
    const { $ref: reference } = schema;
    const target = typeof reference === "string" ? referenced(root, reference) : undefined;
    const found = visit(target) || childrenOf(schema).some(visit);
    active.delete(schema);
    done.add(schema);
    return found;
  };
  return visit(root);
}

function ownValue(place: unknown, name: string): unknown {
  return isObject(place) && Object.hasOwn(place, name) ? place[name] : undefined;
}

/** A step that is no sound percent-encoding stands for itself. */
function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}
