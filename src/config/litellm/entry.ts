import { isObject, type JsonObject } from "../../domain/json-object.ts";

/** A map of LiteLLM's file that remembers which keys were read, so that the others can be named. */
export class Entry {
  readonly #values: JsonObject;
  readonly #read = new Set<string>();

  constructor(value: unknown) {
    this.#values = isObject(value) ? value : {};
  }

  value(key: string): unknown {
    this.#read.add(key);
    return Object.hasOwn(this.#values, key) ? (this.#values[key] ?? undefined) : undefined;
  }

  peek(key: string): unknown {
    return Object.hasOwn(this.#values, key) ? this.#values[key] : undefined;
  }

  /**
   * A text, or a number as text, with variables in Sluice's form; undefined for any other value.
   */
  text(key: string): string | undefined {
    const value = this.value(key);
    if (typeof value === "number") return String(value);
    return typeof value === "string" && value !== "" ? withVariable(value) : undefined;
  }

  number(key: string): number | undefined {
    const value = Number(this.value(key) ?? Number.NaN);
    return Number.isFinite(value) && value > 0 ? value : undefined;
  }

  list(key: string): readonly unknown[] {
    const value = this.value(key);
    return Array.isArray(value) ? value : [];
  }

  map(key: string): Entry {
    return new Entry(this.value(key));
  }

  unread(): readonly string[] {
    return Object.keys(this.#values).filter((key) => !this.#read.has(key));
  }
}

/** `os.environ/NAME` is `${NAME}`; a plain `${` is escaped. */
function withVariable(text: string): string {
  const [, name] = /^os\.environ\/(\w+)$/.exec(text) ?? [];
  return name === undefined ? text.replaceAll("${", "$${") : `\${${name}}`;
}
