#!/usr/bin/env bun
import packageJson from "../package.json" with { type: "json" };
import { accountsCommand } from "./cli/accounts.ts";
import { AdminRefusal } from "./cli/admin-client.ts";
import { applicationsCommand } from "./cli/applications.ts";
import { auditCommand } from "./cli/audit.ts";
import { checkConfigCommand } from "./cli/check-config.ts";
import {
  CommandError,
  exitCodes,
  UsageError,
  type Command,
  type CommandIo,
} from "./cli/command.ts";
import { explainCommand } from "./cli/explain.ts";
import { keysCommand } from "./cli/keys.ts";
import { refusalsCommand } from "./cli/refusals.ts";
import { serveCommand } from "./cli/serve.ts";
import { simulatorCommand } from "./cli/simulator.ts";
import { createProcessInput, writeOutput } from "./cli/standard-streams.ts";
import { tokensCommand } from "./cli/tokens.ts";
import { usageCommand } from "./cli/usage.ts";
import { usersCommand } from "./cli/users.ts";
import { readEnvironment } from "./config/environment.ts";
import { systemClock } from "./domain/clock.ts";

const commands: readonly Command[] = [
  serveCommand,
  checkConfigCommand,
  accountsCommand,
  applicationsCommand,
  keysCommand,
  usersCommand,
  tokensCommand,
  usageCommand,
  auditCommand,
  refusalsCommand,
  explainCommand,
  simulatorCommand,
];

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === "--version" || name === "-v") {
    console.log(packageJson.version);
    return exitCodes.ok;
  }
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    console.log(overview());
    return name === undefined ? exitCodes.usage : exitCodes.ok;
  }
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) {
    console.error(`sluice: there is no command '${name}'\n\n${overview()}`);
    return exitCodes.usage;
  }
  return runCommand(command, rest);
}

async function runCommand(command: Command, args: readonly string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    console.log(command.help(args));
    return exitCodes.ok;
  }
  if (args.includes("--version")) {
    console.log(packageJson.version);
    return exitCodes.ok;
  }
  // What Sluice writes (keys' digests, usage, the pepper) is for its own user alone.
  process.umask(0o077);
  try {
    return await command.run(args, createIo());
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(`sluice ${command.name}: ${error.message}`);
      console.error(`See: sluice ${command.name} --help`);
      return exitCodes.usage;
    }
    if (!(error instanceof CommandError)) throw error;
    console.error(error.message);
    // A value that the control plane does not take was typed wrongly.
    const isMistake = error instanceof AdminRefusal && error.status === 400;
    return isMistake ? exitCodes.usage : exitCodes.failed;
  }
}

function createIo(): CommandIo {
  const asked = new AbortController();
  const onSignal = (): void => {
    // The second one means now: whatever still drains is given up.
    if (asked.signal.aborted) process.exit(exitCodes.failed);
    asked.abort();
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return {
    environment: readEnvironment(),
    print: (line) => console.log(line),
    report: (line) => console.error(line),
    write: writeOutput,
    input: createProcessInput(),
    clock: systemClock,
    random: (target) => crypto.getRandomValues(target),
    signal: asked.signal,
    onReload: (callback) => void process.on("SIGHUP", callback),
  };
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
