import { Command as Parser, CommanderError } from "commander";
import { exitCodes } from "../process/exit-codes.ts";
import { describeVersion, readCommit } from "../process/program-commit.ts";
import { checkOptions, reportError } from "./mistakes.ts";
import { commands } from "./command-list.ts";
import { type CommandEntry, type CommandIo, type CommandRun, UsageError } from "./command.ts";

const helpWidth = 100;

/** Runs the command that the arguments name; resolves with the exit code. */
export async function runCommandLine(args: readonly string[], io: CommandIo): Promise<number> {
  const [first = "--help", second] = args;
  // `help keys rotate` and `keys help rotate` mean `keys rotate --help`, as in other tools.
  if (first === "help") return runCommandLine([...args.slice(1), "--help"], io);
  if (second === "help") return runCommandLine([first, ...args.slice(2), "--help"], io);
  if (["version", "-v"].includes(first) || args.includes("--version")) {
    io.print(describeVersion(io.version, readCommit()));
    return exitCodes.ok;
  }
  let exitCode: number = args.length === 0 ? exitCodes.usage : exitCodes.ok;
  const run: CommandRun = {
    io,
    wholeProgram: () => newProgram(commands, run),
    action:
      (step) =>
      async (...typed) => {
        exitCode = await step(...typed);
      },
  };
  const entry = commands.find(({ name }) => name === first);
  const program = await newProgram(entry === undefined ? [] : [entry], run);
  const line = withDefaultVerb(args.length === 0 ? ["--help"] : args, entry);
  const named = commandNamed(program, line);
  try {
    checkOptions(named, line);
    await program.parseAsync(line, { from: "user" });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(error, wordsOf(named), io);
    if (error.exitCode === 0) return exitCode;
    // A command that needs a verb has shown its help.
    if (error.code === "commander.help") return exitCodes.usage;
    return reportError(new UsageError(worded(error.message, named)), wordsOf(named), io);
  }
}

/** The program with all commands; those of `defined` with their options, verbs and actions. */
async function newProgram(defined: readonly CommandEntry[], run: CommandRun): Promise<Parser> {
  const { io } = run;
  const program = new Parser("sluice")
    .usage("COMMAND [options]")
    .helpOption("-h, --help", "Show this help.")
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      getOutHelpWidth: () => helpWidth,
      getErrHelpWidth: () => helpWidth,
      writeOut: (text) => io.print(text.trimEnd()),
      writeErr: (text) => io.report(text.trimEnd()),
      // Reported with the command that it is about.
      outputError: () => undefined,
    })
    .option("-v, --version", "Show version and commit.");
  for (const entry of commands) {
    const made = program.command(entry.name).summary(entry.summary);
    if (defined.includes(entry)) (await entry.load())(made, run);
  }
  return program;
}

function withDefaultVerb(args: readonly string[], entry: CommandEntry | undefined): string[] {
  const [first = "", second = "-", ...rest] = args;
  const isHelp = second === "--help" || second === "-h";
  if (entry?.defaultVerb === undefined || isHelp || !second.startsWith("-")) return [...args];
  return [first, entry.defaultVerb, ...(args.length > 1 ? [second, ...rest] : [])];
}

/** The innermost command that the arguments name. */
function commandNamed(program: Parser, args: readonly string[]): Parser {
  const [word, ...rest] = args;
  const next = program.commands.find((command) => command.name() === word);
  return next === undefined ? program : commandNamed(next, rest);
}

function wordsOf(command: Parser): string {
  const { parent } = command;
  return parent === null || parent.parent === null
    ? command.name()
    : `${wordsOf(parent)} ${command.name()}`;
}

/** The message of the parser, with the commands there are if none of them was meant. */
function worded(message: string, named: Parser): string {
  const text = message
    .replace(/^error: /, "")
    .replace(/\n\(Did you mean (.*)\)$/s, "; did you mean $1");
  if (!text.startsWith("unknown command") || text.includes("did you mean")) return text;
  return `${text}; there are ${named.commands.map((command) => command.name()).join(", ")}`;
}
