import { readFileSync, statSync } from "node:fs";
import { errorCode, oddKind } from "../domain/system-files.ts";
import type { Config } from "./config.ts";
import { formatProblems, parseConfig } from "./load.ts";
import type { Environment } from "./text/interpolate.ts";
import { keepRestartSettings } from "./restart-settings.ts";
import { configWarnings } from "./problems/warnings.ts";

export interface WatchOptions {
  readonly path: string;
  readonly env: Environment;
  readonly current: Config;
  readonly text: string;
  readonly intervalMs?: number;
  readonly now: () => number;
  /** `isWhole`: all settings of the text are in use, none waits for a restart. */
  readonly onConfig: (config: Config, text: string, isWhole: boolean) => void;
  /** Called for a file that is invalid or unreadable; the current configuration stays. */
  readonly onProblems: (text: string) => void;
  /** Called for warnings, and for settings that need a restart. */
  readonly onNotice: (text: string) => void;
}

const defaultIntervalMs = 250;

/**
 * Watches a configuration file: passes on valid changes and reports invalid ones. It looks at what
 * the path leads to, and reads it once it has been the same for two looks. So it does not matter
 * how the file is changed: written, replaced, or behind a link that is swapped.
 */
export class ConfigWatch implements Disposable {
  readonly #options: WatchOptions;
  #current: Config;
  /** The text that was read last; undefined if none could be read. */
  #text: string | undefined;
  #isUnreadable = false;
  /** Whether the text that was read last is invalid. */
  #isRefused = false;
  /** The version of the file at the last look, and the one that was read last. */
  #seen = "";
  #taken = "";
  readonly #timer: ReturnType<typeof setInterval>;
  #isClosed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#current = options.current;
    this.#text = options.text;
    this.#timer = setInterval(() => this.#look(), options.intervalMs ?? defaultIntervalMs);
    this.#timer.unref();
  }

  /** Reads the file at once. What is wrong with it is reported again. */
  reload(): void {
    this.#isUnreadable = false;
    if (this.#isRefused) this.#text = undefined;
    this.#readAgain();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#isClosed = true;
  }

  #look(): void {
    const version = versionOf(this.#options.path);
    const isQuiet = version === this.#seen;
    this.#seen = version;
    if (!isQuiet || version === this.#taken) return;
    this.#taken = version;
    this.#readAgain();
  }

  #readAgain(): void {
    if (this.#isClosed) return;
    const text = this.#read();
    if (text === undefined || text === this.#text) return;
    this.#text = text;
    this.#apply(text);
  }

  #apply(text: string): void {
    const { path, env, now, onConfig, onProblems, onNotice } = this.#options;
    const result = parseConfig(text, { name: path, env });
    this.#isRefused = !result.ok;
    if (!result.ok) {
      onProblems(
        `${formatProblems(path, result.problems)}\nThe previous configuration stays in use.`,
      );
      return;
    }
    const { config, pending } = keepRestartSettings(this.#current, result.config);
    this.#current = config;
    if (pending.length > 0) {
      onNotice(`${path}: changes that take effect only after a restart: ${pending.join(", ")}`);
    }
    for (const warning of configWarnings(config, now())) onNotice(warning);
    onConfig(config, text, pending.length === 0);
  }

  #read(): string | undefined {
    const { path } = this.#options;
    try {
      const odd = oddKind(statSync(path));
      if (odd !== undefined) return this.#unreadable(`is ${odd}; it must be a file`);
      const text = readFileSync(path, "utf8");
      this.#isUnreadable = false;
      return text;
    } catch (error) {
      return this.#unreadable(`cannot be read (${errorCode(error) ?? "unknown error"})`);
    }
  }

  #unreadable(reason: string): undefined {
    const { path, onProblems } = this.#options;
    if (!this.#isUnreadable) {
      onProblems(`${path}: ${reason}\nThe previous configuration stays in use.`);
    }
    this.#isUnreadable = true;
  }
}

/** Differs after each change of what a path leads to. */
function versionOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    return errorCode(error) ?? "unknown error";
  }
}
