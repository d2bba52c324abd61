import { writeSync } from "node:fs";
import type { ProcessEnvironment } from "../../config/environment.ts";
import { systemClock } from "../../domain/clock.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { writeCrashReport, type Crash } from "./crash-report.ts";
import { workerVariables } from "./fetch-limit.ts";
import type { WorkerSettings } from "./messages.ts";
import { Supervisor } from "./supervisor.ts";
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
    onCrash: (crash, delayMs, settings) => tellCrash({ crash, delayMs, settings, version }),
  });
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(name, () => supervisor.pass(name));
  }
  return supervisor.run();
}

interface ToldCrash {
  readonly crash: Crash;
  readonly delayMs: number;
  /** Undefined when the worker ended before it had read its configuration. */
  readonly settings: WorkerSettings | undefined;
  readonly version: string;
}

function tellCrash({ crash, delayMs, settings, version }: ToldCrash): void {
  const { logLevel: level = "info", logFormat: format = "text" } = settings ?? {};
  const logger = createLogger({ level, format, clock: systemClock, write: writeLine });
  let report: string | undefined;
  try {
    if (settings !== undefined) report = writeCrashReport(crash, settings.dataDir, version);
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    logger.log("warn", "a crash report cannot be written", { reason });
  }
  logger.log("error", "worker crashed", {
    pid: crash.pid,
    exitCode: crash.exitCode,
    signal: crash.signal,
    error: crash.failure?.error,
    at: crash.failure?.positions[0],
    uptimeMs: Math.round(crash.uptimeMs),
    restarts: crash.restarts,
    nextStartMs: delayMs,
    report,
  });
}

/** The supervisor outlives whoever reads its log. */
function writeLine(line: string): void {
  try {
    writeSync(2, `${line}\n`);
  } catch {
    // Nobody is left to be told.
  }
}
