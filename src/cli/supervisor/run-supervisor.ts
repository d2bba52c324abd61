import { writeSync } from "node:fs";
import type { ProcessEnvironment } from "../../config/environment.ts";
import { systemClock } from "../../domain/clock.ts";
import { createLogger, type Logger } from "../../telemetry/logger.ts";
import { writeCrashReport, type Crash } from "./crash-report.ts";
import { workerVariables } from "./fetch-limit.ts";
import type { WorkerSettings } from "./messages.ts";
import { Supervisor, type AfterEnd } from "./supervisor.ts";
import { startWorker } from "./worker.ts";

/** Whether the arguments ask for a gateway that is started again when it ends unasked. */
export function asksForSupervisor([command, ...rest]: readonly string[]): boolean {
  const alone = ["--unsupervised", "--help", "-h", "--version"];
  return command === "serve" && !rest.some((argument) => alone.includes(argument));
}

/** Runs this program once more, as a worker, and again; resolves with the exit code. */
export function runSupervisor(environment: ProcessEnvironment, version: string): Promise<number> {
  const program = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  const supervisor = new Supervisor({
    clock: systemClock,
    start: ({ fetchLimit, addresses }, onMessage) =>
      startWorker(
        {
          command: [...program, ...addresses],
          environment: workerVariables(fetchLimit, environment),
        },
        onMessage,
      ),
    onCrash: (crash, after) => tellCrash(crash, after, version),
    onStartRefused: tellRefusal,
  });
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(name, () => supervisor.pass(name));
  }
  return supervisor.run();
}

function tellCrash(crash: Crash, { nextStartMs, settings }: AfterEnd, version: string): void {
  const logger = loggerOf(settings);
  let report: string | undefined;
  try {
    // One that did not get so far has said why, and does so again and again: its reports would push
    // out that of the crash before it.
    const isKept = settings !== undefined && crash.hasServed;
    if (isKept) report = writeCrashReport(crash, settings.dataDir, version);
  } catch (error) {
    logger.log("warn", "a crash report cannot be written", { reason: codeOf(error) });
  }
  logger.log("error", crash.hasServed ? "worker crashed" : "worker ended before it served", {
    pid: crash.pid,
    exitCode: crash.exitCode,
    signal: crash.signal,
    error: crash.failure?.error,
    at: crash.failure?.positions[0],
    uptimeMs: Math.round(crash.uptimeMs),
    restarts: crash.restarts,
    nextStartMs,
    report,
  });
}

function tellRefusal(error: unknown, { nextStartMs, settings }: AfterEnd): void {
  const fields = { reason: codeOf(error), nextStartMs };
  loggerOf(settings).log("error", "a worker cannot be started", fields);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

function loggerOf(settings: WorkerSettings | undefined): Logger {
  const { logLevel: level = "info", logFormat: format = "text" } = settings ?? {};
  return createLogger({ level, format, clock: systemClock, write: writeLine });
}

/** The supervisor outlives whoever reads its log. */
function writeLine(line: string): void {
  try {
    writeSync(2, `${line}\n`);
  } catch {
    // Nobody is left to be told.
  }
}
