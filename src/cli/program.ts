import type { SettingsArguments } from "./serve/load-settings.ts";

/** How the command line is started from a checkout; npm's own lines stay out of the output. */
const program = "npm run -s sluice --";

/** A line that runs as it is; `words` are what follows the name of the program. */
export function commandLine(words: string, place: SettingsArguments = {}): string {
  const { config, "data-dir": dataDir } = place;
  return [
    `${program} ${words}`,
    ...(config === undefined ? [] : [`--config ${shellWord(config)}`]),
    ...(dataDir === undefined ? [] : [`--data-dir ${shellWord(dataDir)}`]),
  ].join(" ");
}

/** An example of the help; what stands before a ` | ` is another program that pipes into it. */
export function exampleLine(example: string): string {
  const at = example.indexOf(" | ");
  if (at === -1) return commandLine(example);
  return `${example.slice(0, at)} | ${commandLine(example.slice(at + 3))}`;
}

function shellWord(text: string): string {
  return /^[\w./:@=+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
