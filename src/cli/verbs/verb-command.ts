import { Command as Parser, CommanderError, InvalidArgumentError, Option } from "commander";
import { connectionOptions } from "../client/connect.ts";
import { suggest } from "../../domain/suggest.ts";
import { UsageError, type Command } from "../command.ts";
import type { ReplyRecord } from "../output/reply-fields.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { exampleLine } from "../program.ts";
import { checkOptions } from "./check-options.ts";
import { Given, type Field } from "./fields.ts";
import { runVerb } from "./run-verb.ts";
import { verbOf, type Typed, type Verb, type VerbSpec } from "./verb.ts";

/** A command made of the operations of a resource, or of a single operation. */
export interface ResourceSpec {
  readonly name: string;
  readonly about: string;
  /** A single verb that is named like the command is the command itself. */
  readonly verbs: readonly VerbSpec[];
  /** A name for examples. */
  readonly example?: string;
  /** The verb that is used if none is given; undefined: one is required. */
  readonly defaultVerb?: string;
}

interface CommandRun {
  readonly nowMs: number;
  readonly run: (verb: Verb, typed: Typed) => Promise<void>;
}

export function resourceCommand(resource: ResourceSpec): Command {
  return {
    name: resource.name,
    help: (args) => helpOf(resource, args),
    async run(args, io) {
      if (args[0] === "help") {
        io.print(helpOf(resource, args.slice(1)));
        return exitCodes.ok;
      }
      requireVerb(resource, args[0]);
      let exitCode: number = exitCodes.ok;
      const run = async (verb: Verb, typed: Typed): Promise<void> => {
        exitCode = await runVerb(verb, typed, io);
      };
      try {
        const parser = parserOf(resource, { nowMs: io.clock.now(), run });
        checkOptions(verbParser(parser, resource, args), args);
        await parser.parseAsync(args, { from: "user" });
      } catch (error) {
        if (!(error instanceof CommanderError)) throw error;
        throw new UsageError(error.message.replace(/^error: /, ""));
      }
      return exitCode;
    },
  };
}

/** The parser of the verb that the arguments name. */
function verbParser(made: Parser, { defaultVerb }: ResourceSpec, args: readonly string[]): Parser {
  const named = made.commands.find((verb) => verb.name() === args[0]);
  return named ?? made.commands.find((verb) => verb.name() === defaultVerb) ?? made;
}

function helpOf(resource: ResourceSpec, [first]: readonly string[]): string {
  const made = parserOf(resource, { nowMs: 0, run: () => Promise.resolve() });
  const shown = made.commands.find((verb) => verb.name() === first) ?? made;
  let text = "";
  shown.configureOutput({ writeOut: (part) => void (text += part) }).outputHelp();
  return text.trimEnd();
}

function requireVerb({ name, verbs, defaultVerb }: ResourceSpec, first = "-"): void {
  const names = verbs.map((verb) => verb.name);
  const isOption = first.startsWith("-");
  const isVerb = names.includes(first) || (isOption && defaultVerb !== undefined);
  if (isVerb || names[0] === name) return;
  const meant = isOption ? undefined : suggest(first, names);
  if (meant !== undefined) {
    throw new UsageError(`unknown verb '${first}'; did you mean '${meant}'?`);
  }
  const unknown = isOption ? "" : `; not '${first}'`;
  throw new UsageError(`choose a verb: ${names.join(", ")}${unknown}`);
}

function parserOf(resource: ResourceSpec, commandRun: CommandRun): Parser {
  const { name, about, verbs, defaultVerb } = resource;
  const program = new Parser("sluice")
    .helpOption("-h, --help", "Show this help.")
    .exitOverride()
    .configureOutput({
      writeErr: () => undefined,
      getOutHelpWidth: () => 100,
    });
  const made = program.command(name).description(about);
  const all = verbs.map((spec) => verbOf(spec, commandRun.nowMs));
  const [only] = all;
  if (only?.spec.name === name) return addVerb(made, { resource, verb: only }, commandRun);
  made.usage("VERB [options]").helpCommand(false).commandsGroup("Verbs:");
  for (const verb of all) {
    const isDefault = verb.spec.name === defaultVerb;
    addVerb(made.command(verb.spec.name, { isDefault }), { resource, verb }, commandRun);
  }
  const examples = all.flatMap((verb) => examplesOf(resource, verb).slice(0, 1));
  return made.addHelpText("after", endOfHelp(examples));
}

interface Named {
  readonly resource: ResourceSpec;
  readonly verb: Verb;
}

function addVerb(made: Parser, { resource, verb }: Named, { run }: CommandRun): Parser {
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
  return made.action(async (typed: unknown) => {
    await run(verb, {
      argument: typeof typed === "string" ? typed : undefined,
      values: valuesOf(made, verb.fields),
      options: optionsOf(made),
    });
  });
}

function readArgument(typed: string): string {
  if (typed !== "") return typed;
  throw new InvalidArgumentError("It must not be empty.");
}

function idempotencyOption(): Option {
  const about = "Repeats with the same text take effect only once.";
  return new Option("--idempotency-key <text>", about);
}

/** Options of every verb. */
function sharedOptions(): readonly Option[] {
  const json = ["--json", "Print the JSON of the admin API, for scripts."] as const;
  const all = [json, ...connectionOptions];
  return all.map(([flags, about]) => new Option(flags, about).helpGroup("Options of every verb:"));
}

/** The values of all options by name. */
function optionsOf(made: Parser): ReplyRecord {
  const options: ReplyRecord = made.opts();
  const read: Record<string, unknown> = {};
  for (const [name, typed] of Object.entries(options)) {
    read[name] = typed instanceof Given ? typed.value : typed;
  }
  return read;
}

/** The fields whose options were given, or have a default. */
function valuesOf(made: Parser, fields: readonly Field[]): Typed["values"] {
  const options = optionsOf(made);
  const values = new Map<Field, unknown>();
  for (const field of fields) {
    const { flag, option } = field;
    const name = option.attributeName();
    const isGiven = made.getOptionValueSource(name) === "cli" || option.defaultValue !== undefined;
    const value = flag === undefined ? options[name] : flag;
    if (isGiven && value !== undefined) values.set(field, value);
  }
  return values;
}

function examplesOf({ name, example }: ResourceSpec, { spec, argument }: Verb): readonly string[] {
  if (spec.examples !== undefined) return spec.examples;
  return [[name, spec.name, ...(argument === undefined ? [] : [example])].join(" ")];
}

function endOfHelp(examples: readonly string[]): string {
  const lines = examples.map((example) => `  ${exampleLine(example)}`).join("\n");
  return `\nExamples:\n${lines}\n\nExit code: 0 done, 1 failed, 2 wrong usage.`;
}
