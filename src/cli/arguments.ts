import { readArguments, UsageError } from "./command.ts";
import { readDurationMs } from "./duration.ts";

/** One option of a command: how it is read, and its line of the help. */
export interface OptionSpec {
  readonly type: "string" | "boolean";
  readonly short?: string;
  /** What stands for the value in the help, such as `NAME`. */
  readonly value?: string;
  readonly about: string;
}

export type OptionSpecs<Name extends string = string> = Readonly<Record<Name, OptionSpec>>;

/** The options of a command line, each read by what it means. All throw `UsageError`. */
export class Arguments<Name extends string> {
  readonly positionals: readonly string[];
  readonly #values: ReadonlyMap<string, unknown>;

  constructor(commandLine: readonly string[], specs: OptionSpecs) {
    const { values, positionals } = readArguments(commandLine, specs);
    this.#values = new Map(Object.entries(values));
    this.positionals = positionals;
  }

  /** The only argument beside options; `what` says what it has to be. */
  one(what: string): string {
    const [first, ...more] = this.positionals;
    if (first !== undefined && first !== "" && more.length === 0) return first;
    throw new UsageError(`name one ${what}`);
  }

  /** Refuses arguments that are no options. */
  none(): void {
    const [first] = this.positionals;
    if (first !== undefined) throw new UsageError(`there is no place for '${first}'`);
  }

  text(name: Name): string | undefined {
    const value = this.#values.get(name);
    return typeof value === "string" ? value : undefined;
  }

  required(name: Name): string {
    const text = this.text(name);
    if (text !== undefined && text !== "") return text;
    throw new UsageError(`--${name} is needed`);
  }

  flag(name: Name): boolean {
    return this.#values.get(name) === true;
  }

  /** A whole number from 0. */
  count(name: Name): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (/^(?:0|[1-9][0-9]{0,14})$/.test(text)) return Number(text);
    throw new UsageError(`--${name} takes a whole number, not '${text}'`);
  }

  /** Values with commas between them. */
  list(name: Name): readonly string[] | undefined {
    const parts = this.text(name)?.split(",");
    return parts?.map((part) => part.trim()).filter((part) => part !== "");
  }

  /** A time such as `0s`, `30m`, `24h` or `7d`, in milliseconds. */
  durationMs(name: Name): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const durationMs = readDurationMs(text);
    if (durationMs !== undefined) return durationMs;
    throw new UsageError(`--${name} takes a time such as 30m, 24h or 7d, not '${text}'`);
  }

  /** A date, a time of ISO 8601, or how far away it is; the text of an ISO time. */
  time(name: Name, nowMs: number): string | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const durationMs = readDurationMs(text);
    if (durationMs !== undefined) return new Date(nowMs + durationMs).toISOString();
    if (/^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/.test(text)) {
      const at = Date.parse(text);
      // A day that its month does not have would count on into the next.
      if (Number.isFinite(at) && isDay(text.slice(0, 10))) return new Date(at).toISOString();
    }
    throw new UsageError(`--${name} takes a date such as 2027-01-31 or 30d, not '${text}'`);
  }
}

function isDay(text: string): boolean {
  const at = Date.parse(text);
  return Number.isFinite(at) && new Date(at).toISOString().startsWith(text);
}
