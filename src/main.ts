#!/usr/bin/env bun
import packageJson from "../package.json" with { type: "json" };
import { exitCodes } from "./process/exit-codes.ts";
import { AskedToEnd, type CommandIo, type EndSignal } from "./cli/command.ts";
import { forbidCoreDumps } from "./cli/serve/core-dumps.ts";
import { StopSignals } from "./process/stop-signals.ts";
import { createProcessInput, StandardStreams } from "./cli/serve/standard-streams.ts";
import { failureFacts } from "./process/supervisor/failure-facts.ts";
import { nameProcess } from "./process/name-process.ts";
import {
  connectToSupervisor,
  disconnectFromSupervisor,
  type SupervisorLink,
} from "./process/supervisor/supervisor-link.ts";
import { asksForSupervisor, runSupervisor } from "./process/supervisor/run-supervisor.ts";
import { readEnvironment, type ProcessEnvironment } from "./config/environment.ts";
import { systemClock } from "./domain/clock.ts";

// Only the user of Sluice can read its files (digests of keys, usage, the pepper).
process.umask(0o077);
const streams = new StandardStreams(systemClock);
if (!forbidCoreDumps()) streams.report("sluice: core dumps cannot be forbidden here (RLIMIT_CORE)");
const asked = new AbortController();
await end(await run(process.argv.slice(2), readEnvironment()));

async function run(args: readonly string[], environment: ProcessEnvironment): Promise<number> {
  const { version } = packageJson;
  const isWorker = environment.isWorker === true && process.send !== undefined;
  if (!isWorker && asksForSupervisor(args)) {
    streams.outliveReaders();
    nameProcess("sluice");
    return runSupervisor({ environment, version, log: streams.log });
  }
  const io = createIo(environment, isWorker);
  // Loaded late, to keep the supervisor small.
  if (io.supervisor !== undefined) return runChild(args, { ...io, supervisor: io.supervisor });
  const { runCommandLine } = await import("./cli/run-command-line.ts");
  return runCommandLine(args, io);
}

interface ChildIo extends CommandIo {
  readonly supervisor: SupervisorLink;
}

/** Loads only the modules of `serve`, because callers are waiting for a worker. */
async function runChild([, ...args]: readonly string[], io: ChildIo): Promise<number> {
  io.outliveReaders();
  const { reportError } = await import("./cli/mistakes.ts");
  const { rehearseServe, serveAs } = await import("./cli/serve/serve.ts");
  const { prepareMeanwhile } = await import("./process/supervisor/prepare-meanwhile.ts");
  const { begun } = io.supervisor;
  const known = await prepareMeanwhile(begun, () => rehearseServe(args, io));
  const { role, addresses, portUse } = await begun;
  nameProcess(role.kind === "control" ? "sluice-control" : `sluice-work-${role.number}`);
  const serving = serveAs({ role, portUse }, [...args, ...addresses], { io, known });
  const exitCode = await serving.catch((error: unknown) => reportError(error, "serve", io));
  disconnectFromSupervisor();
  return exitCode;
}

/** Ends the process explicitly if a pending write, or a read of a terminal, would keep it alive. */
async function end(exitCode: number): Promise<void> {
  const isWritten = await streams.finish(asked.signal);
  const { failure } = streams;
  if (failure !== undefined) {
    streams.report(`sluice: standard output cannot be written (${failure})`);
    await streams.finish(asked.signal);
  }
  process.exitCode = failure === undefined ? exitCode : Math.max(exitCode, exitCodes.failed);
  if (!isWritten || asked.signal.aborted) process.exit();
}

function askToEnd(by: EndSignal): void {
  // A second signal ends the process without draining.
  if (asked.signal.aborted) process.exit(exitCodes.failed);
  asked.abort(new AskedToEnd(by));
}

function createIo(environment: ProcessEnvironment, isWorker: boolean): CommandIo {
  let reload: () => void = () => undefined;
  const supervisor = isWorker
    ? connectToSupervisor({
        onSignal: (signal) => (signal === "SIGHUP" ? reload() : askToEnd(signal)),
        endNow: () => process.exit(exitCodes.failed),
      })
    : undefined;
  if (!isWorker) {
    const stopSignals = new StopSignals(systemClock);
    for (const name of ["SIGTERM", "SIGINT"] as const) {
      process.on(name, () => stopSignals.counts() && askToEnd(name));
    }
  }
  let isService = false;
  let hasStarted = false;
  return {
    version: packageJson.version,
    environment,
    print: (line) => streams.print(line),
    report: (line) => streams.report(line),
    write: (bytes) => streams.write(bytes),
    log: streams.log,
    outliveReaders() {
      if (isService) return;
      isService = true;
      streams.outliveReaders();
      endOnFailure((thrown) => {
        supervisor?.tellFailure(thrown);
        // Once the gateway serves, messages may quote prompts. A supervisor reports the crash
        // itself.
        if (!hasStarted) streams.report(Bun.inspect(thrown));
        else if (supervisor === undefined) streams.report(describeFailure(thrown));
      });
    },
    input: createProcessInput(asked.signal),
    clock: systemClock,
    random: (target) => crypto.getRandomValues(target),
    signal: asked.signal,
    onReload(callback) {
      reload = callback;
      // Without a handler the signal ends the process, which is right if there is nothing to
      // reload.
      if (!isWorker) process.on("SIGHUP", callback);
    },
    tellStarted(addresses) {
      hasStarted = true;
      supervisor?.tellStarted(addresses);
    },
    supervisor,
  };
}

/** Replaces the runtime's report of uncaught errors, which blocks on its reader. */
function endOnFailure(report: (thrown: unknown) => void): void {
  let isEnding = false;
  const onFailure = (thrown: unknown): void => {
    if (isEnding) return;
    isEnding = true;
    report(thrown);
    void streams.finish(asked.signal).then(() => process.exit(exitCodes.failed));
  };
  process.on("uncaughtException", onFailure);
  process.on("unhandledRejection", onFailure);
}

function describeFailure(thrown: unknown): string {
  const { error, positions } = failureFacts(thrown);
  return [`sluice crashed: ${error}`, ...positions.map((position) => `    at ${position}`)].join(
    "\n",
  );
}
