import type { ProcessEnvironment } from "../../src/config/environment.ts";
import type { CommandIo } from "../../src/cli/command.ts";
import { runCommandLine } from "../../src/cli/run-command-line.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { noLog } from "../../src/telemetry/log/log-output.ts";
import type { FinishedCommand } from "../support/sluice-process.ts";

export interface RunOptions {
  readonly environment?: Partial<ProcessEnvironment>;
  /** What is piped into the command. */
  readonly input?: string;
  /** Whether a person types it. */
  readonly isTerminal?: boolean;
  /** Asks the command to end. */
  readonly signal?: AbortSignal;
  readonly onPrint?: (line: string) => void;
  /** How many writes the reader of the output takes before it goes. */
  readonly takenWrites?: number;
}

/** Runs `sluice ...` in this process, which costs a hundredth of a process of its own. */
export async function runHere(
  commandLine: readonly string[],
  options: RunOptions = {},
): Promise<FinishedCommand> {
  let output = "";
  let errors = "";
  let writes = 0;
  const io: CommandIo = {
    version: "0.0.0",
    environment: {
      configPath: undefined,
      adminUrl: undefined,
      adminToken: undefined,
      variables: {},
      ...options.environment,
    },
    print(line) {
      output += `${line}\n`;
      options.onPrint?.(line);
    },
    report: (line) => void (errors += `${line}\n`),
    write(bytes) {
      if (writes >= (options.takenWrites ?? Infinity)) return Promise.resolve(false);
      writes += 1;
      output += Buffer.from(bytes).toString();
      return Promise.resolve(true);
    },
    log: noLog,
    outliveReaders: () => undefined,
    tellStarted: () => undefined,
    input: {
      isTerminal: options.isTerminal === true,
      chunks: () => new Response(options.input ?? "").body ?? new ReadableStream<Uint8Array>(),
      setEcho: () => undefined,
    },
    clock: systemClock,
    random: (target) => crypto.getRandomValues(target),
    signal: options.signal ?? new AbortController().signal,
    onReload: () => undefined,
  };
  const exitCode = await runCommandLine(commandLine, io);
  return { exitCode, output, errors };
}
