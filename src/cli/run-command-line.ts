import { suggest } from "../settings/suggest.ts";
import { explain } from "./explain/explain.ts";
import { keys } from "./keys/keys.ts";
import { tokens, users } from "./resources/access.ts";
import { accounts, applications } from "./resources/accounts.ts";
import { audit } from "./resources/audit.ts";
import { peppers, pools, refusals } from "./resources/platform.ts";
import { usage } from "./usage/usage.ts";
import { resourceCommand } from "./verbs/verb-command.ts";
import { checkConfigCommand } from "./check-config.ts";
import { exitCodes } from "../process/exit-codes.ts";
import type { Command, CommandIo } from "./command.ts";
import { commandLine } from "./program.ts";
import { runCommand } from "./run-command.ts";
import { serveCommand } from "./serve/serve.ts";
import { simulatorCommand } from "./serve/simulator.ts";

/** In the order of the overview. */
export const commands: readonly Command[] = [
  serveCommand,
  checkConfigCommand,
  ...[accounts, applications, keys, pools, peppers, users, tokens].map(resourceCommand),
  ...[usage, audit, refusals, explain].map(resourceCommand),
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
  if (rest[0] === "help") return runCommandLine([name, ...rest.slice(1), "--help"], version, io);
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
