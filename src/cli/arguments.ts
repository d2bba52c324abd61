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

  /** A time that is to come: a date, a time of ISO 8601, or how far away it is; as an ISO time. */
  time(name: Name, nowMs: number): string | undefined {
    return this.#time(name, (durationMs) => nowMs + durationMs);
  }

  /** A time that was: the same forms, and a duration counts back. */
  pastTime(name: Name, nowMs: number): string | undefined {
    return this.#time(name, (durationMs) => nowMs - durationMs);
  }

  #time(name: Name, at: (durationMs: number) => number): string | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const durationMs = readDurationMs(text);
    const timeMs = durationMs === undefined ? readTimeMs(text) : at(durationMs);
    if (timeMs !== undefined) return new Date(timeMs).toISOString();
    throw new UsageError(
      `--${name} takes a date (2026-11-21), a time (2026-11-21T09:00 in UTC, or with Z or +02:00 ` +
        `at its end), or how far away it is (30m, 24h, 7d), not '${text}'`,
    );
  }
}

/** Without a zone a time is one of UTC, as all times are that the command line prints. */
function readTimeMs(text: string): number | undefined {
  const [, day, time = "", zone = ""] = timePattern.exec(text) ?? [];
  if (day === undefined) return undefined;
  const timeMs = Date.parse(time === "" ? day : `${day}T${time}${zone === "" ? "Z" : zone}`);
  // A day that its month does not have would count on into the next.
  const isDay = Number.isFinite(timeMs) && toDay(Date.parse(day)) === day;
  return isDay ? timeMs : undefined;
}

const timePattern =
  /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|[+-]\d\d:\d\d)?)?$/;

function toDay(timeMs: number): string {
  return Number.isFinite(timeMs) ? new Date(timeMs).toISOString().slice(0, 10) : "";
}
