#!/usr/bin/env bun
import packageJson from "../package.json" with { type: "json" };
import { AskedToEnd, exitCodes, type CommandIo, type EndSignal } from "./cli/command.ts";
import { EndWishes } from "./cli/end-wishes.ts";
import { createProcessInput, createProcessOutput } from "./cli/standard-streams.ts";
import { connectToSupervisor, disconnectFromSupervisor } from "./cli/supervisor/supervisor-link.ts";
import { asksForSupervisor, runSupervisor } from "./cli/supervisor/run-supervisor.ts";
import { readEnvironment, type ProcessEnvironment } from "./config/environment.ts";
import { systemClock } from "./domain/clock.ts";

// What Sluice writes (keys' digests, usage, the pepper) is for its own user alone.
process.umask(0o077);
process.exitCode = await run(process.argv.slice(2), readEnvironment());

async function run(args: readonly string[], environment: ProcessEnvironment): Promise<number> {
  const { version } = packageJson;
  const isWorker = environment.isWorker === true && process.send !== undefined;
  if (!isWorker && asksForSupervisor(args)) return runSupervisor(environment, version);
  const io = createIo(environment, isWorker);
  // Only now: a supervisor stays small without everything else.
  if (isWorker) return runWorker(args, io);
  const { runCommandLine } = await import("./cli/run-command-line.ts");
  return runCommandLine(args, version, io);
}

/** Callers wait for a worker: it loads what serves, and none of the other commands. */
async function runWorker([, ...args]: readonly string[], io: CommandIo): Promise<number> {
  const { runCommand } = await import("./cli/run-command.ts");
  const { serveCommand } = await import("./cli/serve.ts");
  const exitCode = await runCommand(serveCommand, args, io);
  disconnectFromSupervisor();
  return exitCode;
}

function createIo(environment: ProcessEnvironment, isWorker: boolean): CommandIo {
  const asked = new AbortController();
  const end = (by: EndSignal): void => {
    // The second one means now: whatever still drains is given up.
    if (asked.signal.aborted) process.exit(exitCodes.failed);
    asked.abort(new AskedToEnd(by));
  };
  let reload: () => void = () => undefined;
  const supervisor = isWorker
    ? connectToSupervisor({
        onSignal: (signal) => (signal === "SIGHUP" ? reload() : end(signal)),
        endNow: () => process.exit(exitCodes.failed),
      })
    : undefined;
  if (!isWorker) {
    const wishes = new EndWishes(systemClock);
    for (const name of ["SIGTERM", "SIGINT"] as const) {
      process.on(name, () => wishes.counts() && end(name));
    }
  }
  return {
    environment,
    print: (line) => console.log(line),
    report: (line) => console.error(line),
    write: createProcessOutput(),
    input: createProcessInput(),
    clock: systemClock,
    random: (target) => crypto.getRandomValues(target),
    signal: asked.signal,
    onReload(callback) {
      reload = callback;
      // Without a handler the signal ends the process, as it should where nothing is read again.
      if (!isWorker) process.on("SIGHUP", callback);
    },
    supervisor,
  };
}
