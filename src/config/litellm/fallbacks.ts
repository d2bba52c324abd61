import { isObject } from "../../domain/json-object.ts";
import type { Entry } from "./entry.ts";

/** The models that follow one when it fails; those of `*` follow all that have none. */
export type Fallbacks = ReadonlyMap<string, readonly string[]>;

/** Entries such as `{ chat: [other] }`; a plain name is for all. The last section with any counts. */
export function readFallbacks(sections: readonly Entry[], key: string): Fallbacks {
  const found = new Map<string, readonly string[]>();
  const entries = sections.map((section) => section.list(key)).findLast(({ length }) => length > 0);
  for (const entry of entries ?? []) {
    const named = isObject(entry) ? entry : { "*": entry };
    for (const [name, others] of Object.entries(named)) {
      if (!found.has(name)) found.set(name, namesIn(others));
    }
  }
  if (key !== "fallbacks") return found;
  for (const section of sections) {
    const usual = namesIn(section.value("default_fallbacks"));
    if (usual.length > 0 && !found.has("*")) found.set("*", usual);
  }
  return found;
}

/** Names, or objects that have one. */
function namesIn(value: unknown): readonly string[] {
  return [value].flat().flatMap((each) => {
    const name: unknown = isObject(each) ? each["model"] : each;
    return typeof name === "string" ? [name] : [];
  });
}

/** In LiteLLM the fallbacks of a fallback are tried when it has failed, before the next one. */
export function chainOf(
  name: string,
  fallbacks: Fallbacks,
  nameOf: (written: string) => string,
): readonly string[] {
  const chain = new Set<string>();
  const follow = (at: string): void => {
    for (const written of fallbacks.get(at) ?? fallbacks.get("*") ?? []) {
      const other = nameOf(written);
      if (other === name || chain.has(other)) continue;
      chain.add(other);
      follow(other);
    }
  };
  follow(name);
  return [...chain];
}
