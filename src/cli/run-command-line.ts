import { suggest } from "../settings/suggest.ts";
import { accountsCommand } from "./resources/accounts.ts";
import { applicationsCommand } from "./resources/applications.ts";
import { auditCommand } from "./resources/audit.ts";
import { checkConfigCommand } from "./check-config.ts";
import { exitCodes } from "../process/exit-codes.ts";
import type { Command, CommandIo } from "./command.ts";
import { explainCommand } from "./explain/explain.ts";
import { keysCommand } from "./keys/keys.ts";
import { peppersCommand } from "./resources/peppers.ts";
import { poolsCommand } from "./resources/pools.ts";
import { commandLine } from "./program.ts";
import { refusalsCommand } from "./resources/refusals.ts";
import { runCommand } from "./run-command.ts";
import { serveCommand } from "./serve/serve.ts";
import { simulatorCommand } from "./serve/simulator.ts";
import { tokensCommand } from "./resources/tokens.ts";
import { usageCommand } from "./usage/usage.ts";
import { usersCommand } from "./resources/users.ts";

/** In the order of the overview. */
export const commands: readonly Command[] = [
  serveCommand,
  checkConfigCommand,
  accountsCommand,
  applicationsCommand,
  keysCommand,
  poolsCommand,
  peppersCommand,
  usersCommand,
  tokensCommand,
  usageCommand,
  auditCommand,
  refusalsCommand,
  explainCommand,
  simulatorCommand,
];

/** Does what the arguments of the process say; resolves with the exit code. */
export async function runCommandLine(
  args: readonly string[],
  version: string,
  io: CommandIo,
): Promise<number> {
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v" || name === "version") {
    io.print(version);
    return exitCodes.ok;
  }
  if (name === undefined || name === "--help" || name === "-h") {
    io.print(overview());
    return name === undefined ? exitCodes.usage : exitCodes.ok;
  }
  // `help keys rotate` is how others ask for `keys rotate --help`.
  if (name === "help") return runCommandLine([...rest, "--help"], version, io);
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) {
    io.report(`sluice: ${noCommand(name)}`);
    return exitCodes.usage;
  }
  if (rest.includes("--help") || rest.includes("-h")) {
    io.print(command.help(rest));
    return exitCodes.ok;
  }
  if (rest.includes("--version")) {
    io.print(version);
    return exitCodes.ok;
  }
  return runCommand(command, rest, io);
}

function noCommand(name: string): string {
  const names = commands.map((command) => command.name);
  const meant = suggest(name, names);
  if (meant === undefined) return `there is no command '${name}'\n\n${overview()}`;
  return `there is no command '${name}'; did you mean \`${commandLine(meant)}\`?`;
}

function overview(): string {
  const width = Math.max(...commands.map((command) => command.name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `Usage: sluice COMMAND [options]

Commands:
${lines.join("\n")}

Options:
  --help      help, also after a command
  --version   version`;
}
