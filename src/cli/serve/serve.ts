import type { Beginning } from "../../process/supervisor/messages.ts";
import type { Command, CommandIo } from "../command.ts";
import { loadSettings, type Settings } from "./load-settings.ts";
import { readServeArguments } from "./serve-options.ts";

export const serveCommand: Command = {
  name: "serve",
  isService: true,
  help: () => `Usage: sluice serve [--config FILE] [--data HOST:PORT] [--admin HOST:PORT] [--data-dir DIR]
                    [--unsupervised] [--init]

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
  --unsupervised      run everything in one process, which is not restarted after a crash
  --init              start although the database or its pepper is missing or a different one, and
                      create what is missing; nothing is removed. Only for a single start

SIGTERM: report not ready and serve for shutdown.pre_stop, then refuse new calls, let running ones
finish (shutdown.drain_timeout), and exit. SIGINT: the same without shutdown.pre_stop. A second
signal exits at once. SIGHUP: read the configuration again.

Exit code: 0 ended as requested, 1 could not start, 2 wrong usage.`,
  run: (args, io) => serve(args, io),
};

/** Runs a process of the gateway in its role; `known` are settings that were read on standby. */
export async function serveAs(
  { role, portUse }: Pick<Beginning, "role" | "portUse">,
  args: readonly string[],
  { io, known }: { readonly io: CommandIo; readonly known: Settings | undefined },
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

async function serve(args: readonly string[], io: CommandIo): Promise<number> {
  const { serveAlone } = await import("./serve-alone.ts");
  return serveAlone(readServeArguments(args), io);
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
