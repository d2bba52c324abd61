import type { CommandEntry } from "../command.ts";

/** The words that may follow a command. */
export interface CommandWords {
  readonly name: string;
  readonly summary: string;
  /** Options of the command itself, or of its default verb. */
  readonly options: readonly string[];
  readonly verbs: readonly VerbWords[];
}

export interface VerbWords {
  readonly name: string;
  readonly options: readonly string[];
}

/** Reads the words of a command from its help, so that completion offers what the help says. */
export async function wordsOf({ name, summary, load }: CommandEntry): Promise<CommandWords> {
  const command = await load();
  const text = command.help([]);
  const verbs = verbsIn(text).map((verb) => ({
    name: verb,
    options: optionsIn(command.help([verb])),
  }));
  return { name, summary, options: optionsIn(text), verbs };
}

function verbsIn(help: string): readonly string[] {
  const [, list = ""] = /^Verbs:\n((?: {2}.*\n)+)/m.exec(help) ?? [];
  return [...list.matchAll(/^ {2}([a-z-]+)/gm)].map(([, verb = ""]) => verb);
}

function optionsIn(help: string): readonly string[] {
  const found = help.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm);
  return [...new Set([...found].map(([, option = ""]) => option))];
}
