import type { ProcessEnvironment } from "../../config/environment.ts";
import { systemClock } from "../../domain/clock.ts";
import type { LogSink } from "../../telemetry/log/log-output.ts";
import { createLogger, describeDropped, type Logger } from "../../telemetry/log/logger.ts";
import { writeCrashReport, type Crash } from "./crash-report.ts";
import { startChild, type GatewaySettings } from "./child.ts";
import { Parent, type AfterEnd } from "./parent.ts";
import { Restarts } from "./restart-socket.ts";

/** Whether the arguments start a gateway. */
export function startsGateway([command, ...rest]: readonly string[]): boolean {
  return command === "serve" && !rest.some((each) => ["--help", "-h", "--version"].includes(each));
}

export interface ParentSetup {
  readonly environment: ProcessEnvironment;
  readonly version: string;
  readonly log: LogSink;
}

/** Runs this program as gateway processes; resolves to the exit code. */
export function runParent({ environment, version, log }: ParentSetup): Promise<number> {
  const variables = { ...environment.variables, SLUICE_PROCESS: "1" };
  const restarts = new Restarts({
    restart: () => parent.restart(),
    logger: () => loggerOf(parent.settings, log),
  });
  const parent = new Parent({
    clock: systemClock,
    start: (onMessage) => startChild({ command: thisProgram(), environment: variables }, onMessage),
    onCrash: (crash, { nextStartMs, settings }) =>
      reportCrash({ crash, nextStartMs, version, settings }, loggerOf(settings, log)),
    onStartRefused: (error, { nextStartMs, settings }) => {
      const fields = { reason: codeOf(error), nextStartMs };
      loggerOf(settings, log).log("error", "a process cannot be started", fields);
    },
    onServing: ({ dataDir }) => restarts.start(dataDir),
  });
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => parent.pass(name));
  }
  process.on("SIGHUP", () => {
    if (restarts.hasChanged) void restarts.restart();
    else parent.pass("SIGHUP");
  });
  return parent.run().finally(() => restarts.stop());
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
    // A process that never served has printed its reason, and prints it at each restart. Its reports
    // would displace that of the crash before.
    const isKept = settings !== undefined && crash.hasServed;
    if (isKept) report = writeCrashReport(crash, settings.dataDir, version);
  } catch (error) {
    logger.log("warn", "a crash report cannot be written", { reason: codeOf(error) });
  }
  logger.log("error", crash.hasServed ? "process crashed" : "process ended before it served", {
    process: crash.number,
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
