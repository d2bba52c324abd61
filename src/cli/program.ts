import type { Command as Parser } from "commander";
import type { SettingsArguments } from "./serve/load-settings.ts";

/** How the command line is started: with npm, or as an executable. */
const program = Bun.isStandaloneExecutable ? "sluice" : "npx sluice";

/** A complete command line; `words` are the part after the name of the program. */
export function commandLine(words: string, settings: SettingsArguments = {}): string {
  const { config, "data-dir": dataDir } = settings;
  return [
    `${program} ${words}`,
    ...(config === undefined ? [] : [`--config ${shellWord(config)}`]),
    ...(dataDir === undefined ? [] : [`--data-dir ${shellWord(dataDir)}`]),
  ].join(" ");
}

export function shellWord(text: string): string {
  return /^[\w./:@=+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Options of every command that works with the configuration. */
export const settingsOptions = [
  [
    "-c, --config <file>",
    "Configuration (default: SLUICE_CONFIG, else ./sluice.yaml, else /etc/sluice/sluice.yaml, else the demo).",
  ],
  ["--data-dir <dir>", "Data directory, instead of the configured one (demo: ./data/demo)."],
] as const;

export interface SettingsTyped {
  readonly config?: string;
  readonly dataDir?: string;
}

export function addSettingsOptions(made: Parser): Parser {
  for (const [flags, about] of settingsOptions) made.option(flags, about);
  return made;
}

export function settingsOf({ config, dataDir }: SettingsTyped): SettingsArguments {
  return { config, "data-dir": dataDir };
}

export function exitCodeHelp(done: string, failed: string): string {
  return `\nExit code: 0 ${done}, 1 ${failed}, 2 wrong usage.`;
}
