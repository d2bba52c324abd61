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

/** An example for the help. Another program before ` | ` is piped into it. */
export function exampleLine(example: string): string {
  const at = example.indexOf(" | ");
  if (at === -1) return commandLine(example);
  return `${example.slice(0, at)} | ${commandLine(example.slice(at + 3))}`;
}

function shellWord(text: string): string {
  return /^[\w./:@=+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
