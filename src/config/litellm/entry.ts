import { isObject, type JsonObject } from "../../domain/json-object.ts";

/** A map of LiteLLM's file that remembers which keys were understood, so that the others can be named. */
export class Entry {
  readonly #values: JsonObject;
  readonly #read = new Set<string>();

  constructor(value: unknown) {
    this.#values = isObject(value) ? value : {};
  }

  value(key: string): unknown {
    this.#read.add(key);
    return this.peek(key) ?? undefined;
  }

  peek(key: string): unknown {
    return Object.hasOwn(this.#values, key) ? this.#values[key] : undefined;
  }

  /** A text, or a number as text, with variables in Sluice's form; undefined for any other value. */
  text(key: string): string | undefined {
    const value = this.peek(key);
    const isText = typeof value === "number" || (typeof value === "string" && value !== "");
    return isText ? withVariable(String(this.value(key))) : undefined;
  }

  /** A finite number, as YAML 1.1 reads it too: `20_000`. */
  number(key: string): number | undefined {
    const value = this.peek(key);
    if (typeof value !== "number" && !(typeof value === "string" && value.trim() !== "")) {
      return undefined;
    }
    const read = Number(typeof value === "string" ? value.replaceAll("_", "") : value);
    if (!Number.isFinite(read)) return undefined;
    this.#read.add(key);
    return read;
  }

  /** A number of tokens. */
  size(key: string): number | undefined {
    const value = this.number(key);
    return value !== undefined && value >= 1 ? Math.floor(value) : undefined;
  }

  /** Also a text, as Python and YAML 1.1 read it. */
  flag(key: string): boolean | undefined {
    const value = this.value(key);
    if (typeof value === "boolean") return value;
    return typeof value === "string" ? /^(?:true|yes|on|1)$/i.test(value) : undefined;
  }

  list(key: string): readonly unknown[] {
    const value = this.value(key);
    return Array.isArray(value) ? value : [];
  }

  map(key: string): Entry {
    return new Entry(this.value(key));
  }

  get keys(): readonly string[] {
    return Object.keys(this.#values);
  }

  /** Keys that nothing has asked for, and that say something. */
  unread(): readonly string[] {
    return this.keys.filter((key) => !this.#read.has(key) && !saysNothing(this.#values[key]));
  }
}

function saysNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isObject(value)) return Object.keys(value).length === 0;
  return value === null || value === false || value === "";
}

/** `os.environ/NAME` is `${NAME}`; a `${` that names no variable is escaped. */
function withVariable(text: string): string {
  const [, name] = /^os\.environ\/(\w+)$/.exec(text) ?? [];
  return name === undefined ? text.replaceAll(/\$\{(?![A-Za-z_]\w*\})/g, "$$$${") : `\${${name}}`;
}
