import { completionCommand } from "./completion/completion.ts";
import { suggest } from "../settings/suggest.ts";
import { exitCodes } from "../process/exit-codes.ts";
import { backupCommand } from "./backup/backup-command.ts";
import { restoreCommand } from "./backup/restore-command.ts";
import { checkConfigCommand } from "./check-config.ts";
import type { Command, CommandIo } from "./command.ts";
import { commandLine } from "./program.ts";
import { restartCommand } from "./restart.ts";
import { runCommand } from "./run-command.ts";
import { serveCommand } from "./serve/serve.ts";
import { simulatorCommand } from "./serve/simulator.ts";

const completion = completionCommand(allCommands);

const ownCommands: readonly Command[] = [
  serveCommand,
  restartCommand,
  checkConfigCommand,
  backupCommand,
  restoreCommand,
  simulatorCommand,
  completion,
];

/** All commands, in the order of the overview. */
export async function allCommands(): Promise<readonly Command[]> {
  const { resourceCommands } = await import("./resource-commands.ts");
  return [
    serveCommand,
    restartCommand,
    checkConfigCommand,
    backupCommand,
    restoreCommand,
    ...resourceCommands,
    simulatorCommand,
    completion,
  ];
}

/** Runs the command that the arguments name; resolves with the exit code. */
export async function runCommandLine(args: readonly string[], io: CommandIo): Promise<number> {
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v" || name === "version") {
    io.print(io.version);
    return exitCodes.ok;
  }
  // `help keys rotate` means `keys rotate --help`, as in other tools.
  if (name === "help") return runCommandLine([...rest, "--help"], io);
  // `serve` does not load the modules of the other commands.
  const own = ownCommands.find((candidate) => candidate.name === name);
  const commands = own === undefined ? await allCommands() : ownCommands;
  if (name === undefined || name === "--help" || name === "-h") {
    io.print(overview(commands));
    return name === undefined ? exitCodes.usage : exitCodes.ok;
  }
  const command = own ?? commands.find((candidate) => candidate.name === name);
  if (command === undefined) {
    io.report(`sluice: ${noCommand(name, commands)}`);
    return exitCodes.usage;
  }
  if (rest.includes("--help") || rest.includes("-h")) {
    io.print(command.help(rest));
    return exitCodes.ok;
  }
  if (rest.includes("--version")) {
    io.print(io.version);
    return exitCodes.ok;
  }
  return runCommand(command, rest, io);
}

function noCommand(name: string, commands: readonly Command[]): string {
  const names = commands.map((command) => command.name);
  const meant = suggest(name, names);
  if (meant === undefined) return `there is no command '${name}'\n\n${overview(commands)}`;
  return `there is no command '${name}'; did you mean \`${commandLine(meant)}\`?`;
}

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map((command) => command.name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `Usage: sluice COMMAND [options]

Commands:
${lines.join("\n")}

Options:
  --help      help, also after a command
  --version   version`;
}
