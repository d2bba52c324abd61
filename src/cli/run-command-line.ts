import { suggest } from "../domain/suggest.ts";
import { describeVersion, readCommit } from "../process/program-commit.ts";
import { exitCodes } from "../process/exit-codes.ts";
import { commands } from "./command-list.ts";
import type { CommandIo } from "./command.ts";
import { commandLine } from "./program.ts";
import { runCommand } from "./run-command.ts";

/** Runs the command that the arguments name; resolves with the exit code. */
export async function runCommandLine(args: readonly string[], io: CommandIo): Promise<number> {
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v" || name === "version") {
    io.print(describeVersion(io.version, readCommit()));
    return exitCodes.ok;
  }
  // `help keys rotate` means `keys rotate --help`, as in other tools.
  if (name === "help") return runCommandLine([...rest, "--help"], io);
  if (name === undefined || name === "--help" || name === "-h") {
    io.print(overview());
    return name === undefined ? exitCodes.usage : exitCodes.ok;
  }
  const entry = commands.find((candidate) => candidate.name === name);
  if (entry === undefined) {
    io.report(`sluice: ${noCommand(name)}`);
    return exitCodes.usage;
  }
  const command = await entry.load();
  if (rest.includes("--help") || rest.includes("-h")) {
    io.print(command.help(rest));
    return exitCodes.ok;
  }
  if (rest.includes("--version")) {
    io.print(describeVersion(io.version, readCommit()));
    return exitCodes.ok;
  }
  return runCommand(command, rest, io);
}

function noCommand(name: string): string {
  const names = commands.map((command) => command.name);
  const meant = suggest(name, names);
  if (meant === undefined) return `unknown command '${name}'\n\n${overview()}`;
  return `unknown command '${name}'; did you mean \`${commandLine(meant)}\`?`;
}

function overview(): string {
  const width = Math.max(...commands.map((command) => command.name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `Usage: sluice COMMAND [options]

Commands:
${lines.join("\n")}

Options:
  --help      help, also after a command
  --version   version and commit`;
}
