#!/usr/bin/env bun
import packageJson from "../package.json" with { type: "json" };
import { exitCodes, nameProcess, stopRequests } from "./process/program.ts";
import { AskedToEnd, type CommandIo, type EndSignal, reportError } from "./cli/command.ts";
import { forbidCoreDumps } from "./cli/serve/core-dumps.ts";
import { createProcessInput, StandardStreams } from "./cli/serve/standard-streams.ts";
import { failureFacts } from "./process/failure-facts.ts";
import {
  connectToParent,
  disconnectFromParent,
  type ParentLink,
} from "./process/parent/parent-link.ts";
import { runParent, startsGateway } from "./process/parent/run-parent.ts";
import { readEnvironment, type ProcessEnvironment } from "./config/environment.ts";
import { systemClock } from "./domain/clock.ts";

// Only the user of Sluice can read its files (digests of keys, usage, the pepper).
process.umask(0o077);
const streams = new StandardStreams(systemClock);
if (!forbidCoreDumps()) streams.report("sluice: core dumps cannot be forbidden here (RLIMIT_CORE)");
const asked = new AbortController();
await end(await run(process.argv.slice(2), readEnvironment()));

async function run(args: readonly string[], environment: ProcessEnvironment): Promise<number> {
  const isChild = environment.isGatewayProcess === true && process.send !== undefined;
  if (!isChild && startsGateway(args)) {
    streams.outliveReaders();
    nameProcess("sluice");
    return runParent({ environment, log: streams.log });
  }
  const io = createIo(environment, isChild);
  // Loaded late, to keep the parent small.
  if (io.parent !== undefined) return runChild(args, { ...io, parent: io.parent });
  const { runCommandLine } = await import("./cli/run-command-line.ts");
  return runCommandLine(args, io);
}

interface ChildIo extends CommandIo {
  readonly parent: ParentLink;
}

/** Loads only the modules of `serve`, because callers are waiting. */
async function runChild([, ...args]: readonly string[], io: ChildIo): Promise<number> {
  io.outliveReaders();
  const { serve } = await import("./cli/serve/serve.ts");
  const beginning = await io.parent.begun;
  nameProcess(`sluice-${beginning.number}`);
  const serving = serve(beginning, [...args, ...beginning.addresses], io);
  const exitCode = await serving.catch((error: unknown) => reportError(error, io));
  disconnectFromParent();
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

function createIo(environment: ProcessEnvironment, isChild: boolean): CommandIo {
  let reload: () => void = () => undefined;
  const parent = isChild
    ? connectToParent({
        onSignal: (signal) => (signal === "SIGHUP" ? reload() : askToEnd(signal)),
        endNow: () => process.exit(exitCodes.failed),
      })
    : undefined;
  if (!isChild) {
    const isStopRequest = stopRequests(systemClock);
    for (const name of ["SIGTERM", "SIGINT"] as const) {
      process.on(name, () => isStopRequest() && askToEnd(name));
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
        parent?.tellFailure(thrown);
        // Once the gateway serves, messages may quote prompts. The parent reports the crash
        // itself.
        if (!hasStarted) streams.report(Bun.inspect(thrown));
        else if (parent === undefined) streams.report(describeFailure(thrown));
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
      if (!isChild) process.on("SIGHUP", callback);
    },
    tellStarted(addresses) {
      hasStarted = true;
      parent?.tellStarted(addresses);
    },
    parent,
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
