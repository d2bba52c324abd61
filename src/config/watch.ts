import { type FSWatcher, readFileSync, realpathSync, statSync, watch } from "node:fs";
import { dirname, resolve } from "node:path";
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
  /** The text of `current`; by default the file when watching begins. */
  readonly text?: string;
  /** Quiet time after a change before the file is read. */
  readonly debounceMs?: number;
  /** Wall clock, ms. */
  readonly now: () => number;
  /** `isWhole`: all settings of the text are in use, none waits for a restart. */
  readonly onConfig: (config: Config, text: string, isWhole: boolean) => void;
  /** Called for a file that is invalid or unreadable; the current configuration stays. */
  readonly onProblems: (text: string) => void;
  /** Called for warnings, for settings that need a restart, and when watching fails. */
  readonly onNotice?: (text: string) => void;
}

export interface ConfigWatch extends Disposable {
  /** Reads the file at once. What is wrong with it is reported again. */
  reload(): void;
}

const defaultDebounceMs = 100;

/** Watches a configuration file: passes on valid changes and reports invalid ones. */
export function watchConfig(options: WatchOptions): ConfigWatch {
  return new FileConfigWatch(options);
}

class FileConfigWatch implements ConfigWatch {
  readonly #options: WatchOptions;
  readonly #watchers = new Map<string, FSWatcher>();
  #current: Config;
  /** The text that was read last; undefined if none could be read. */
  #text: string | undefined;
  #isUnreadable = false;
  /** Whether the text that was read last is invalid. */
  #isRefused = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#current = options.current;
    this.#text = options.text ?? this.#read();
    this.#watchDirectories();
    // The file may have changed between being read and being watched.
    this.#schedule();
  }

  reload(): void {
    this.#isUnreadable = false;
    if (this.#isRefused) this.#text = undefined;
    this.#readAgain();
  }

  #readAgain(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#watchDirectories();
    const text = this.#read();
    if (text === undefined || text === this.#text) return;
    this.#text = text;
    this.#apply(text);
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #apply(text: string): void {
    const { path, env, now, onConfig, onProblems } = this.#options;
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
      this.#notice(`${path}: changes that take effect only after a restart: ${pending.join(", ")}`);
    }
    for (const warning of configWarnings(config, now())) this.#notice(warning);
    onConfig(config, text, pending.length === 0);
  }

  #notice(text: string): void {
    const { onNotice, onProblems } = this.#options;
    (onNotice ?? onProblems)(text);
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

  #schedule(): void {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => this.#readAgain(),
      this.#options.debounceMs ?? defaultDebounceMs,
    );
    this.#timer.unref();
  }

  /**
   * Watches directories, because the watch of a file ends when an editor replaces it: the directory
   * of the path and that of a symbolic link's target, since either may change.
   */
  #watchDirectories(): void {
    const wanted = new Set([dirname(resolve(this.#options.path)), ...this.#goalDirectory()]);
    for (const [directory, watcher] of this.#watchers) {
      if (wanted.has(directory)) continue;
      watcher.close();
      this.#watchers.delete(directory);
    }
    for (const directory of wanted) {
      if (!this.#watchers.has(directory)) this.#watchDirectory(directory);
    }
  }

  #goalDirectory(): readonly string[] {
    try {
      return [dirname(realpathSync(this.#options.path))];
    } catch {
      return [];
    }
  }

  #watchDirectory(directory: string): void {
    try {
      const watcher = watch(directory, { persistent: false }, () => this.#schedule());
      watcher.on("error", () => {
        watcher.close();
        this.#watchers.delete(directory);
      });
      this.#watchers.set(directory, watcher);
    } catch (error) {
      this.#notice(
        `${directory}: changes cannot be detected (${errorCode(error) ?? "unknown error"}); reload it with SIGHUP`,
      );
    }
  }
}
