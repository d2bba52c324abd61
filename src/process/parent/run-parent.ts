import type { ProcessEnvironment } from "../../config/environment.ts";
import { systemClock } from "../../domain/clock.ts";
import type { LogSink } from "../../telemetry/log/log-output.ts";
import { createLogger, describeDropped, type Logger } from "../../telemetry/log/logger.ts";
import { startChild, type GatewaySettings } from "./child.ts";
import { Parent, type Crash } from "./parent.ts";
import { acceptRestarts } from "./restart-socket.ts";

export function startsGateway([command, ...rest]: readonly string[]): boolean {
  return command === "serve" && !rest.some((each) => ["--help", "-h", "--version"].includes(each));
}

export interface ParentSetup {
  readonly environment: ProcessEnvironment;
  readonly log: LogSink;
}

/** Runs this program as gateway processes; resolves to the exit code. */
export function runParent({ environment, log }: ParentSetup): Promise<number> {
  const variables = { ...environment.variables, SLUICE_PROCESS: "1" };
  let socket: Disposable | undefined;
  const logger = (): Logger => loggerOf(parent.settings, log);
  const parent = new Parent({
    clock: systemClock,
    start: (onMessage) => startChild({ command: thisProgram(), environment: variables }, onMessage),
    onCrash: (crash) => reportCrash(crash, logger()),
    onStartRefused: (error, nextStartMs) => {
      const fields = { reason: codeOf(error), nextStartMs };
      logger().log("error", "a process cannot be started", fields);
    },
    onIgnored({ number, signal }) {
      const fields = { process: number, signal, parent: process.pid };
      logger().log("warn", "a signal to one process has no effect; send it to the parent", fields);
    },
    onServing: ({ dataDir }) => {
      // Compiled code and garbage of the start are of no more use.
      Bun.shrink();
      socket = acceptRestarts(dataDir, { restart: () => parent.restart(), logger });
    },
  });
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(name, () => parent.pass(name));
  }
  return parent.run().finally(() => socket?.[Symbol.dispose]());
}

/** The command that this process was started with. An executable has its entry file in it. */
function thisProgram(): readonly string[] {
  const { execPath, execArgv, argv } = process;
  if (Bun.isStandaloneExecutable) return [execPath, ...argv.slice(2)];
  return [execPath, ...execArgv, ...argv.slice(1)];
}

function reportCrash(crash: Crash, logger: Logger): void {
  const { number, uptimeMs, hasServed, failure, nextStartMs, ...about } = crash;
  logger.log("error", hasServed ? "process crashed" : "process ended before it served", {
    process: number,
    ...about,
    uptimeMs: Math.round(uptimeMs),
    error: failure?.error,
    at: failure?.positions.join(","),
    nextStartMs,
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
