import { Command as Parser, CommanderError } from "commander";
import { exitCodes, readCommit } from "../process/program.ts";
import { commands } from "./command-list.ts";
import { type CommandIo, type CommandRun, reportError } from "./command.ts";

const helpWidth = 100;

export async function runCommandLine(args: readonly string[], io: CommandIo): Promise<number> {
  const [first = "--help"] = args;
  // `help keys rotate` means `keys rotate --help`, as in other tools.
  if (first === "help") return runCommandLine([...args.slice(1), "--help"], io);
  if (["version", "-v"].includes(first) || args.includes("--version")) {
    io.print(`${io.version} (commit ${readCommit() ?? "unknown"})`);
    return exitCodes.ok;
  }
  let exitCode: number = args.length === 0 ? exitCodes.usage : exitCodes.ok;
  const run: CommandRun = {
    io,
    action:
      (step) =>
      async (...typed) => {
        exitCode = await step(...typed);
      },
  };
  const program = newProgram(io);
  for (const { name, summary, load } of commands) {
    const made = program.command(name).summary(summary);
    if (name === first) (await load())(made, run);
  }
  try {
    await program.parseAsync(args.length === 0 ? ["--help"] : args, { from: "user" });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportError(error, io);
    return error.exitCode === 0 ? exitCode : exitCodes.usage;
  }
}

function newProgram(io: CommandIo): Parser {
  return new Parser("sluice")
    .usage("COMMAND [options]")
    .helpOption("-h, --help", "Show this help.")
    .helpCommand(false)
    .showHelpAfterError("(--help shows what there is)")
    .exitOverride()
    .configureOutput({
      getOutHelpWidth: () => helpWidth,
      getErrHelpWidth: () => helpWidth,
      writeOut: (text) => io.print(text.trimEnd()),
      writeErr: (text) => io.report(text.trimEnd()),
    })
    .option("-v, --version", "Show version and commit.");
}
