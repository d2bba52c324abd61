import type { OptionSpecs } from "./arguments.ts";
import { commandLine, exampleLine } from "./program.ts";
import { sharedOptions, type Verb } from "./verb.ts";

export interface CommandText {
  readonly name: string;
  /** What the resource is, in a sentence or two. */
  readonly about: string;
}

/** The help of a command with verbs: all of them, and how they reach a control plane. */
export function formatCommandHelp(command: CommandText, verbs: readonly Verb[]): string {
  const width = Math.max(...verbs.map((verb) => titleOf(verb).length));
  const lines = verbs.map((verb) => `  ${titleOf(verb).padEnd(width)}  ${verb.summary}`);
  const examples = verbs.flatMap((verb) => verb.examples.slice(0, 1));
  return `Usage: sluice ${command.name} VERB [options]

${command.about}

Verbs:
${lines.join("\n")}

Examples:
${formatExamples(examples)}

Options of every verb:
${formatOptions(sharedOptions)}

Options of one: ${commandLine(`${command.name} VERB --help`)}
${exitCodeText}`;
}

/** The help of one verb; `title` is what is typed before its arguments, such as `keys rotate`. */
export function formatVerbHelp(title: string, verb: Verb, about = ""): string {
  const usage = ["Usage: sluice", title, verb.takes, "[options]"].filter((part) => part !== "");
  return `${usage.join(" ")}

${about === "" ? sentence(verb.summary) : about}

Options:
${formatOptions({ ...verb.options, ...sharedOptions })}

Examples:
${formatExamples(verb.examples)}

${exitCodeText}`;
}

const exitCodeText = "Exit code: 0 done, 1 failed, 2 wrong usage.";

function titleOf(verb: Verb): string {
  return verb.takes === "" ? verb.name : `${verb.name} ${verb.takes}`;
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}

function formatExamples(examples: readonly string[]): string {
  return examples.map((example) => `  ${exampleLine(example)}`).join("\n");
}

function formatOptions(specs: OptionSpecs): string {
  const lines = Object.entries(specs).map(([name, { short, value, about }]) => {
    const long = value === undefined ? `--${name}` : `--${name} ${value}`;
    return [short === undefined ? long : `-${short}, ${long}`, about] as const;
  });
  const width = Math.max(...lines.map(([title]) => title.length));
  return lines.map(([title, about]) => `  ${title.padEnd(width)}  ${about}`).join("\n");
}
