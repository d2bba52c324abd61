import { Command as Parser, CommanderError, InvalidArgumentError, Option } from "commander";
import { connectionOptions } from "../client/connect.ts";
import { suggest } from "../../settings/suggest.ts";
import { UsageError, type Command } from "../command.ts";
import type { ReplyRecord } from "../output/reply-fields.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import { exampleLine } from "../program.ts";
import { Given, type Field } from "./fields.ts";
import { runVerb } from "./run-verb.ts";
import { verbOf, type Typed, type Verb, type VerbSpec } from "./verb.ts";

/** A command that is made of operations: of one resource, or a single one. */
export interface ResourceSpec {
  readonly name: string;
  /** One line for the overview. */
  readonly summary: string;
  readonly about: string;
  /** The only one is the command itself when it has the same name. */
  readonly verbs: readonly VerbSpec[];
  /** Taken when the first argument is none; undefined: there must be one. */
  readonly defaultVerb?: string;
}

/** What a parser is made for: the time is that of what is typed. */
interface Place {
  readonly args: readonly string[];
  readonly nowMs: number;
  readonly run: (verb: Verb, typed: Typed) => Promise<void>;
}

export function resourceCommand(resource: ResourceSpec): Command {
  const { name, summary } = resource;
  return {
    name,
    summary,
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
        const parser = parserOf(resource, { args, nowMs: io.clock.now(), run });
        await parser.parseAsync(args, { from: "user" });
      } catch (error) {
        if (!(error instanceof CommanderError)) throw error;
        throw new UsageError(error.message.replace(/^error: /, ""));
      }
      return exitCode;
    },
  };
}

function helpOf(resource: ResourceSpec, [first]: readonly string[]): string {
  const made = parserOf(resource, { args: [], nowMs: 0, run: () => Promise.resolve() });
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
  if (meant !== undefined) throw new UsageError(`there is no '${first}'; did you mean '${meant}'?`);
  const unknown = isOption ? "" : `; not '${first}'`;
  throw new UsageError(`say what to do: ${names.join(", ")}${unknown}`);
}

function parserOf(resource: ResourceSpec, place: Place): Parser {
  const { name, about, verbs, defaultVerb } = resource;
  const program = new Parser("sluice")
    .helpOption("-h, --help", "Show this help.")
    .exitOverride()
    .configureOutput({
      writeErr: () => undefined,
      getOutHelpWidth: () => 100,
    });
  const made = program.command(name).description(about);
  const [only] = verbs;
  if (only?.name === name) return addVerb(made, only, place);
  made.usage("VERB [options]").helpCommand(false).commandsGroup("Verbs:");
  for (const spec of verbs) {
    const verb = made.command(spec.name, { isDefault: spec.name === defaultVerb });
    addVerb(verb, spec, place);
  }
  const examples = verbs.flatMap((verb) => verb.examples.slice(0, 1));
  return made.addHelpText("after", endOfHelp(examples));
}

function addVerb(made: Parser, spec: VerbSpec, { args, nowMs, run }: Place): Parser {
  const verb = verbOf(spec, nowMs);
  const summary = spec.summary ?? verb.operation.summary.replace(/\.$/, "");
  made.summary(summary).addHelpText("after", endOfHelp(spec.examples));
  if (made.description() === "") made.description(`${summary}.`);
  if (verb.argument !== undefined) {
    const isOptional = verb.argument.startsWith("[");
    made.argument(isOptional ? verb.argument : `<${verb.argument}>`, "", readArgument);
  }
  const options = [...verb.fields.map(({ option }) => option), ...verb.options];
  if (verb.operation.method === "POST" && spec.run === undefined) options.push(idempotencyOption());
  const [one, other] = spec.conflict ?? [];
  for (const option of [...options, ...sharedOptions()]) {
    if (other !== undefined && option.attributeName() === one) option.conflicts(other);
    made.addOption(option);
  }
  return made.action(async (argument: unknown) => {
    requireValues(made, args);
    await run(verb, {
      argument: typeof argument === "string" ? argument : undefined,
      values: valuesOf(made, verb.fields),
      options: optionsOf(made),
    });
  });
}

/** Whoever forgets a value must not have the option that follows taken for it. */
function requireValues(made: Parser, args: readonly string[]): void {
  for (const [index, word] of args.entries()) {
    const option = made.options.find(({ long, short }) => long === word || short === word);
    const next = args[index + 1] ?? "";
    if (option?.required !== true || !/^-./.test(next)) continue;
    throw new UsageError(`${word} lacks its value; one with a dash is given as ${word}=-...`);
  }
}

function readArgument(typed: string): string {
  if (typed !== "") return typed;
  throw new InvalidArgumentError("It must not be empty.");
}

function idempotencyOption(): Option {
  const about = "The same for a repeated command, so that it happens once.";
  return new Option("--idempotency-key <text>", about);
}

/** Options of every verb. */
function sharedOptions(): readonly Option[] {
  const json = ["--json", "Print the JSON of the admin API, for scripts."] as const;
  const all = [json, ...connectionOptions];
  return all.map(([flags, about]) => new Option(flags, about).helpGroup("Options of every verb:"));
}

/** All options by their names, as they were read. */
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

function endOfHelp(examples: readonly string[]): string {
  const lines = examples.map((example) => `  ${exampleLine(example)}`).join("\n");
  return `\nExamples:\n${lines}\n\nExit code: 0 done, 1 failed, 2 wrong usage.`;
}
