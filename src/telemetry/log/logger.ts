import type { Clock } from "../../domain/clock.ts";

export const logLevels = ["debug", "info", "warn", "error", "off"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Fields of every line; other fields must not use these names. */
interface LogHead {
  readonly time: string;
  readonly level: string;
  readonly message: string;
}

/** Values that may be logged: no bodies, headers or keys. `events.ts` picks them by name. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>> & {
  readonly [reserved in keyof LogHead]?: never;
};

export interface Logger {
  log(level: Exclude<LogLevel, "off">, message: string, fields?: LogFields): void;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  readonly format: "text" | "json";
  readonly clock: Clock;
  readonly write: (line: string) => void;
}

/** Writes one line per event: `key=value` text for people, JSON for machines. */
export function createLogger(options: LoggerOptions): Logger {
  const threshold = logLevels.indexOf(options.level);
  return {
    log(level, message, fields = {}) {
      if (logLevels.indexOf(level) < threshold) return;
      options.write(formatLine(options, { level, message }, fields));
    },
  };
}

type LineForm = Pick<LoggerOptions, "format" | "clock">;

/** Formats the line that reports dropped lines. */
export function describeDropped(form: LineForm): (lines: number) => string {
  const message = "lines were dropped: the log could not be written";
  return (lines) => formatLine(form, { level: "error", message }, { lines });
}

function formatLine(
  { format, clock }: LineForm,
  event: Omit<LogHead, "time">,
  fields: LogFields,
): string {
  const head = { time: new Date(clock.now()).toISOString(), ...event };
  return format === "json" ? formatJson(head, fields) : formatText(head, fields);
}

function formatJson(head: LogHead, fields: LogFields): string {
  return JSON.stringify({ ...head, ...fields });
}

function formatText({ time, level, message }: LogHead, fields: LogFields): string {
  const parts = [time, level.toUpperCase().padEnd(5), message];
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) parts.push(`${name}=${quote(String(value))}`);
  }
  return parts.join(" ");
}

/** Quotes values whose spaces or control characters would break the line. */
function quote(value: string): string {
  return /^[\w.:/@+%-]+$/.test(value) ? value : JSON.stringify(value);
}
