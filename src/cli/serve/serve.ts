import type { Beginning } from "../../process/supervisor/messages.ts";
import { CommandError, UsageError, type CommandIo } from "../command.ts";
import { loadSettings, type Settings } from "./load-settings.ts";
import { readServeArguments } from "./serve-options.ts";
import { StartError } from "./start-messages.ts";

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
    return serveControl(values, { supervisor, known, portUse }, io);
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
