import type { Clock } from "../../domain/clock.ts";
import { apiKeyPattern } from "../../domain/keys/api-key.ts";

const logLevels = ["debug", "info", "warn", "error", "off"] as const;
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
  /** Whether lines of the level are written. Ask before building an expensive line. */
  writes(level: Exclude<LogLevel, "off">): boolean;
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
  const writes: Logger["writes"] = (level) => logLevels.indexOf(level) >= threshold;
  const format = formatOf(options);
  return {
    writes,
    log(level, message, fields = {}) {
      if (writes(level)) options.write(format(level, message, fields));
    },
  };
}

type LineForm = Pick<LoggerOptions, "format" | "clock">;
type Format = (level: keyof typeof levelNames, message: string, fields: LogFields) => string;

const levelNames = { debug: "DEBUG", info: "INFO ", warn: "WARN ", error: "ERROR" } as const;

/** Formats the line that reports dropped lines. */
export function describeDropped(form: LineForm): (lines: number) => string {
  const format = formatOf(form);
  const message = "lines were dropped: the log could not be written";
  return (lines) => format("error", message, { lines });
}

function formatOf({ format, clock }: LineForm): Format {
  const time = timeOf(clock);
  if (format === "text") {
    return (level, message, fields) => {
      const parts = [time(), levelNames[level], message];
      addFields(fields, parts);
      return parts.join(" ");
    };
  }
  return (level, message, fields) => {
    const rest = JSON.stringify(fields);
    const head = `{"time":"${time()}","level":"${level}","message":${JSON.stringify(message)}`;
    return rest === "{}" ? `${head}}` : `${head},${rest.slice(1)}`;
  };
}

/** The time as ISO 8601; the text of a second is made once. */
function timeOf(clock: Pick<Clock, "now">): () => string {
  let second = Number.NaN;
  let text = "";
  return () => {
    const nowMs = Math.floor(clock.now());
    const ms = nowMs % 1_000;
    if (nowMs - ms !== second) {
      second = nowMs - ms;
      text = new Date(second).toISOString().slice(0, -"000Z".length);
    }
    return `${text}${ms < 100 ? (ms < 10 ? "00" : "0") : ""}${ms}Z`;
  };
}

/** Without `Object.entries`, which would cost as much as all the rest; joined once, as texts in texts do. */
function addFields(fields: LogFields, parts: string[]): void {
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined) continue;
    parts.push(typeof value === "string" ? `${name}=${quote(value)}` : `${name}=${value}`);
  }
}

/** Quotes values whose spaces or control characters would break the line. */
function quote(value: string): string {
  return plainText.test(value) ? value : JSON.stringify(value);
}

const plainText = /^[\w.:/@+%-]+$/;

const deepestCause = 4;

/** Names, messages and top stack frames of an error and its causes, with secrets removed. */
export function describeError(error: unknown): string {
  const parts: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < deepestCause && current !== undefined; depth += 1) {
    parts.push(describeOne(current));
    current = current instanceof Error ? current.cause : undefined;
  }
  return redact(parts.join(" <- "));
}

export function redact(text: string): string {
  return text
    .replaceAll(new RegExp(apiKeyPattern, "g"), "[key]")
    .replaceAll(/\bslc-(?:mgt|local)_[0-9A-Za-z_]+/g, "[token]")
    .replaceAll(/\bBearer\s+[^\s"']+/gi, "Bearer [removed]");
}

function describeOne(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === "string" ? error : typeof error;
  const frame = error.stack?.split("\n").find((line) => line.trimStart().startsWith("at "));
  return `${error.name}: ${error.message}${frame === undefined ? "" : ` (${frame.trim()})`}`;
}
