import type { ProcessEnvironment } from "../../config/environment.ts";
import { systemClock } from "../../domain/clock.ts";
import type { LogSink } from "../../telemetry/log/log-output.ts";
import { createLogger, describeDropped, type Logger } from "../../telemetry/log/logger.ts";
import { writeCrashReport, type Crash } from "./crash-report.ts";
import type { GatewaySettings } from "./messages.ts";
import { Restarts } from "./restart/restarts.ts";
import type { AfterEnd } from "./supervisor-options.ts";
import { Supervisor } from "./supervisor.ts";
import { startWorker } from "./worker.ts";

/** Whether the arguments start a gateway that is restarted when it crashes. */
export function asksForSupervisor([command, ...rest]: readonly string[]): boolean {
  const asking = ["--help", "-h", "--version"];
  return command === "serve" && !rest.some((argument) => asking.includes(argument));
}

export interface SupervisorSetup {
  readonly environment: ProcessEnvironment;
  readonly version: string;
  readonly log: LogSink;
}

/** Runs this program as a worker and restarts it; resolves to the exit code. */
export function runSupervisor({ environment, version, log }: SupervisorSetup): Promise<number> {
  const variables = { ...environment.variables, SLUICE_WORKER: "1" };
  const restarts = new Restarts({
    restart: () => supervisor.restart(),
    logger: () => loggerOf(supervisor.settings, log),
  });
  const supervisor = new Supervisor({
    clock: systemClock,
    start: (onMessage) =>
      startWorker({ command: thisProgram(), environment: variables }, onMessage),
    onCrash: (crash, { nextStartMs, settings }) =>
      reportCrash({ crash, nextStartMs, version, settings }, loggerOf(settings, log)),
    onStartRefused: (error, { nextStartMs, settings }) => {
      const fields = { reason: codeOf(error), nextStartMs };
      loggerOf(settings, log).log("error", "a process cannot be started", fields);
    },
    onStandbyLost({ end, error, nextStartMs }, settings) {
      const { exitCode, signal } = end ?? {};
      const reason = end === undefined ? codeOf(error) : undefined;
      const fields = { exitCode, signal, reason, nextStartMs };
      loggerOf(settings, log).log("warn", "no standby worker is available", fields);
    },
    onSilent(kind, settings) {
      const who = kind === "control" ? "control" : "a worker";
      loggerOf(settings, log).log("error", `${who} does not answer and is ended`);
    },
    onServing: ({ dataDir }) => restarts.start(dataDir),
  });
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => supervisor.pass(name));
  }
  process.on("SIGHUP", () => {
    if (restarts.hasChanged) void restarts.restart();
    else supervisor.pass("SIGHUP");
  });
  return supervisor.run().finally(() => restarts.stop());
}

/** The command that this process was started with. An executable has its entry file in it. */
function thisProgram(): readonly string[] {
  const { execPath, execArgv, argv } = process;
  if (Bun.isStandaloneExecutable) return [execPath, ...argv.slice(2)];
  return [execPath, ...execArgv, ...argv.slice(1)];
}

interface ReportedCrash extends AfterEnd {
  readonly crash: Crash;
  readonly version: string;
}

function reportCrash(
  { crash, nextStartMs, settings, version }: ReportedCrash,
  logger: Logger,
): void {
  let report: string | undefined;
  try {
    // A worker that never served has printed its reason, and prints it at each restart. Its reports
    // would displace that of the crash before.
    const isKept = settings !== undefined && crash.hasServed;
    if (isKept) report = writeCrashReport(crash, settings.dataDir, version);
  } catch (error) {
    logger.log("warn", "a crash report cannot be written", { reason: codeOf(error) });
  }
  logger.log("error", crash.hasServed ? "process crashed" : "process ended before it served", {
    process: crash.role,
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

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

function loggerOf(settings: GatewaySettings | undefined, log: LogSink): Logger {
  const { logLevel: level = "info", logFormat: format = "text" } = settings ?? {};
  const form = { format, clock: systemClock };
  log.configure({ describeDropped: describeDropped(form) });
  return createLogger({ ...form, level, write: (line) => log.write(line) });
}
