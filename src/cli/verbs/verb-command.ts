import { InvalidArgumentError, Option, type Command as Parser } from "commander";
import { connectionOptions } from "../client/connect.ts";
import type { Command, CommandRun } from "../command.ts";
import type { ReplyRecord } from "../output/reply-fields.ts";
import { commandLine } from "../program.ts";
import { type Field, nothing } from "./fields.ts";
import { runVerb } from "./run-verb.ts";
import { verbOf, type Typed, type Verb, type VerbSpec } from "./verb.ts";

/** A command made of the operations of a resource, or of a single operation. */
export interface ResourceSpec {
  readonly name: string;
  readonly about: string;
  /** A single verb that is named like the command is the command itself. */
  readonly verbs: readonly VerbSpec[];
  readonly example?: string;
}

export function resourceCommand(resource: ResourceSpec): Command {
  return (made, run) => {
    const { name, about, verbs } = resource;
    made.description(about);
    const all = verbs.map(verbOf);
    const [only] = all;
    if (only?.spec.name === name) return addVerb(made, { resource, verb: only }, run);
    made.usage("VERB [options]").commandsGroup("Verbs:");
    for (const verb of all) {
      const { name: word, isDefault = false } = verb.spec;
      addVerb(made.command(word, { isDefault }), { resource, verb }, run);
    }
    const examples = all.flatMap((verb) => examplesOf(resource, verb).slice(0, 1));
    made.addHelpText("after", endOfHelp(examples));
  };
}

interface Named {
  readonly resource: ResourceSpec;
  readonly verb: Verb;
}

function addVerb(made: Parser, { resource, verb }: Named, { io, action }: CommandRun): void {
  const { spec, operation, argument } = verb;
  const summary = spec.summary ?? operation.summary.replace(/\.$/, "");
  made.summary(summary).addHelpText("after", endOfHelp(examplesOf(resource, verb)));
  if (made.description() === "") made.description(`${summary}.`);
  if (argument !== undefined) {
    made.argument(argument.startsWith("[") ? argument : `<${argument}>`, "", readArgument);
  }
  const options = [...verb.fields.map(({ option }) => option), ...verb.options];
  if (operation.method === "POST" && spec.run === undefined) options.push(idempotencyOption());
  const [one, other] = spec.conflict ?? [];
  for (const option of [...options, ...sharedOptions()]) {
    if (other !== undefined && option.attributeName() === one) option.conflicts(other);
    made.addOption(option);
  }
  made.action(
    action((typed: unknown) => {
      const named = typeof typed === "string" ? typed : undefined;
      const values = valuesOf(made, verb.fields);
      return runVerb(verb, { argument: named, values, options: made.opts() }, io);
    }),
  );
}

function readArgument(typed: string): string {
  if (typed !== "") return typed;
  throw new InvalidArgumentError("It must not be empty.");
}

function idempotencyOption(): Option {
  const about = "Repeats with the same text take effect only once.";
  return new Option("--idempotency-key <text>", about);
}

function sharedOptions(): readonly Option[] {
  const json = ["--json", "Print the JSON of the admin API, for scripts."] as const;
  const all = [json, ...connectionOptions];
  return all.map(([flags, about]) => new Option(flags, about).helpGroup("Options of every verb:"));
}

/** The fields whose options were given, or have a default. */
function valuesOf(made: Parser, fields: readonly Field[]): Typed["values"] {
  const options: ReplyRecord = made.opts();
  const values = new Map<Field, unknown>();
  for (const field of fields) {
    const { flag, option } = field;
    const name = option.attributeName();
    const isGiven = made.getOptionValueSource(name) === "cli" || option.defaultValue !== undefined;
    const value = flag === undefined ? options[name] : flag;
    if (isGiven && value !== undefined) values.set(field, value === nothing ? null : value);
  }
  return values;
}

function examplesOf({ name, example }: ResourceSpec, { spec, argument }: Verb): readonly string[] {
  if (spec.examples !== undefined) return spec.examples;
  return [[name, spec.name, ...(argument === undefined ? [] : [example])].join(" ")];
}

/** Examples, without the name of the program, and what exit codes mean. */
export function endOfHelp(examples: readonly string[]): string {
  const lines = examples.map((example) => `  ${commandLine(example)}`).join("\n");
  return `\nExamples:\n${lines}\n\nExit code: 0 done, 1 failed, 2 wrong usage.`;
}
