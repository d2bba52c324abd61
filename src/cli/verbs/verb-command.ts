import { Command as Parser, CommanderError, InvalidArgumentError, Option } from "commander";
import { connectionOptions } from "../client/connect.ts";
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

/** Where the parser is put to use. */
interface Place {
  readonly nowMs: number;
  readonly write: (text: string) => void;
  readonly run: (verb: Verb, typed: Typed) => Promise<void>;
}

export function resourceCommand(resource: ResourceSpec): Command {
  const { name, summary, verbs } = resource;
  return {
    name,
    summary,
    help([first]) {
      let text = "";
      const place = { nowMs: 0, write: (part: string) => void (text += part), run: neverRun };
      const made = parserOf(resource, place);
      (made.commands.find((verb) => verb.name() === first) ?? made).outputHelp();
      return text.trimEnd();
    },
    async run(args, io) {
      let exitCode: number = exitCodes.ok;
      const run = async (verb: Verb, typed: Typed): Promise<void> => {
        exitCode = await runVerb(verb, typed, io);
      };
      const place = { nowMs: io.clock.now(), write: () => undefined, run };
      try {
        await parserOf(resource, place).parseAsync(args, { from: "user" });
      } catch (error) {
        throw error instanceof CommanderError ? mistake(error, verbs) : error;
      }
      return exitCode;
    },
  };
}

function neverRun(): Promise<void> {
  return Promise.resolve();
}

function mistake({ code, message }: CommanderError, verbs: readonly VerbSpec[]): UsageError {
  const all = `say what to do: ${verbs.map(({ name }) => name).join(", ")}`;
  if (code === "commander.help") return new UsageError(all);
  const text = message
    .replace(/^error: /, "")
    .replace(/\n\(Did you mean (.*)\?\)$/, "; did you mean '$1'?");
  const isUnknown = code === "commander.unknownCommand" && !text.includes("did you mean");
  return new UsageError(isUnknown ? `${text}; ${all}` : text);
}

function parserOf(resource: ResourceSpec, place: Place): Parser {
  const { name, about, verbs, defaultVerb } = resource;
  const program = new Parser("sluice")
    .helpOption("-h, --help", "Show this help.")
    .exitOverride()
    .configureOutput({
      writeOut: place.write,
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

function addVerb(made: Parser, spec: VerbSpec, { nowMs, run }: Place): Parser {
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
    await run(verb, {
      argument: typeof argument === "string" ? argument : undefined,
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
  const read = Object.entries(options).map(([name, typed]) => [
    name,
    typed instanceof Given ? typed.value : typed,
  ]);
  return Object.fromEntries(read);
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
