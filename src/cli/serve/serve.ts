import type { Beginning } from "../../process/supervisor/messages.ts";
import { CommandError, UsageError, type Command, type CommandIo } from "../command.ts";
import { loadSettings, type Settings } from "./load-settings.ts";
import { readServeArguments } from "./serve-options.ts";
import { StartError } from "./start-messages.ts";

export const serveCommand: Command = {
  name: "serve",
  isService: true,
  help: () => `Usage: sluice serve [--config FILE] [--data HOST:PORT] [--admin HOST:PORT] [--data-dir DIR]
                    [--init]

Without a configuration file a demo starts: every alias is served by a built-in simulator, and a
key to try it with is printed once.

The gateway consists of a control process and workers. This process restarts those that crash, and
writes a report of each crash to DIR/crashes. \`status\` shows the processes.

Options:
  -c, --config FILE   configuration (default: SLUICE_CONFIG, else ./sluice.yaml, else
                      /etc/sluice/sluice.yaml, else the demo)
  --data HOST:PORT    address of the API, instead of the configured one
  --admin HOST:PORT   address of the control plane, metrics and health, instead of the configured one
  --data-dir DIR      where state is kept, instead of the configured directory
  --init              start even if the database or its pepper is missing or does not match, and
                      create what is missing; nothing is removed. Applies to this start only

SIGTERM: report not ready and serve for shutdown.pre_stop, then refuse new calls, let running ones
finish (shutdown.drain_timeout), and exit. SIGINT: the same without shutdown.pre_stop. A second
signal exits at once. SIGHUP: reload the configuration.

Exit code: 0 ended as requested, 1 could not start, 2 wrong usage.`,
  run: () => Promise.reject(new Error("only the supervisor starts a process of the gateway")),
};

interface RoleContext {
  readonly io: CommandIo;
  /** Settings that were read on standby. */
  readonly known: Settings | undefined;
}

/** Runs a process of the gateway in its role. Tells the supervisor why it does not start. */
export async function serveAs(
  beginning: Pick<Beginning, "role" | "portUse">,
  args: readonly string[],
  context: RoleContext,
): Promise<number> {
  try {
    return await serveIn(beginning, args, context);
  } catch (error) {
    const reason = reasonToTell(error);
    if (reason !== undefined) context.io.supervisor?.tellNotStarted(reason);
    throw error;
  }
}

/** Undefined for exceptions, whose message may quote a prompt. */
function reasonToTell(error: unknown): string | undefined {
  if (error instanceof StartError) return error.reason;
  return error instanceof CommandError || error instanceof UsageError ? error.message : undefined;
}

async function serveIn(
  { role, portUse }: Pick<Beginning, "role" | "portUse">,
  args: readonly string[],
  { io, known }: RoleContext,
): Promise<number> {
  const values = readServeArguments(args);
  const { supervisor } = io;
  if (supervisor === undefined) throw new Error("only the supervisor assigns a role");
  // A worker must not load modules that open the database.
  if (role.kind === "control") {
    const { serveControl } = await import("./serve-control.ts");
    return serveControl(values, { supervisor, workers: role.workers, known, portUse }, io);
  }
  const { serveWorker } = await import("./serve-worker.ts");
  return serveWorker(values, { role, supervisor, known, portUse }, io);
}

/**
 * Prepares a standby: reads the configuration and loads the modules of a worker. At its start, the
 * process reads the configuration again, and checks it only if it has changed.
 */
export async function rehearseServe(
  args: readonly string[],
  io: CommandIo,
): Promise<Settings | undefined> {
  await import("./serve-worker.ts");
  try {
    return loadSettings(readServeArguments(args), io);
  } catch {
    // Control reports the problem if it persists.
    return undefined;
  }
}
