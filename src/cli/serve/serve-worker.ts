import type { Config } from "../../config/config.ts";
import { startError } from "./start-messages.ts";
import { parseConfig } from "../../config/load.ts";
import { keepRestartSettings } from "../../config/restart-settings.ts";
import { exitCodes } from "../../process/exit-codes.ts";
import type { ConfigFeed } from "../../process/link/messages.ts";
import type { Beginning, Role } from "../../process/supervisor/messages.ts";
import type { SupervisorLink } from "../../process/supervisor/supervisor-link.ts";
import { WorkerProcess } from "../../process/worker/worker-process.ts";
import { untilAsked, type CommandIo } from "../command.ts";
import { proxiesOf, withDataDir, type Settings } from "./load-settings.ts";
import {
  fixedAddress,
  isAskedByPerson,
  withListeners,
  type ServeArguments,
} from "./serve-options.ts";

export interface WorkerRole {
  readonly role: Extract<Role, { kind: "worker" }>;
  readonly supervisor: SupervisorLink;
  /** Settings that were read while this process was a standby. */
  readonly known: Settings | undefined;
  readonly portUse: Beginning["portUse"];
}

/** One of the processes that serve calls. */
export async function serveWorker(
  args: ServeArguments,
  { role, supervisor, known, portUse }: WorkerRole,
  io: CommandIo,
): Promise<number> {
  await using worker = new WorkerProcess({
    ...role,
    log: io.log,
    portUse,
    overrides: { proxies: proxiesOf(io.environment) },
    configOf: (feed, current) => configOf(feed, { args, known, current }, io),
  });
  // Control may have ended before, when all processes are asked to end.
  const read = await Promise.race([worker.readConfig(), untilAsked(io.signal)]);
  if (read === undefined) return exitCodes.ok;
  const { config } = read;
  try {
    await worker.start(read);
  } catch (error) {
    throw await startError(error, config, io);
  }
  io.tellStarted(fixedAddress("data", config.listen.data.port, worker.url));
  const asked = untilAsked(io.signal);
  await Promise.race([asked, supervisor.replaced]);
  if (!io.signal.aborted) await Promise.race([asked, worker.leave()]);
  await worker.drain({ isAnnounced: io.signal.aborted && !isAskedByPerson(io.signal) });
  return exitCodes.ok;
}

interface FeedContext {
  readonly args: ServeArguments;
  readonly known: Settings | undefined;
  readonly current: Config | undefined;
}

/**
 * Control has checked the text. Problems occur here only if the processes have different
 * environments.
 */
function configOf(
  { path, text }: ConfigFeed,
  { args, known, current }: FeedContext,
  { environment }: CommandIo,
): Config | undefined {
  const isKnown = known?.text === text && known.path === path;
  const parsed = isKnown
    ? { ok: true as const, config: known.fileConfig }
    : parseConfig(text, { name: path ?? "built-in demo", env: environment.variables });
  if (!parsed.ok) return undefined;
  const config = withListeners(withDataDir(parsed.config, args, path), args);
  return current === undefined ? config : keepRestartSettings(current, config).config;
}
