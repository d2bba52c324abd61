import type { Config } from "../../config/config.ts";
import type { DatabaseFacts } from "../../store/store.ts";
import { Installation } from "../../store/installation/installation.ts";
import { lockFolder, type FolderLock } from "../../ledger/spool/folder-lock.ts";
import { forgetPepper, inspectFile } from "../../store/sqlite/connection/open-database.ts";
import { openStores } from "../../store/sqlite/open-stores.ts";
import { CommandError, type CommandIo } from "../command.ts";
import { databaseFileOf } from "../backup.ts";

/**
 * Makes the data directory, pepper and database belong together, so that the next start finds
 * nothing missing. Removes nothing and reports its changes. Does nothing when nothing is missing.
 */
export async function startAnew(config: Config, io: CommandIo): Promise<void> {
  const path = databaseFileOf(config, "--init");
  const installation = new Installation(config, io);
  const facts = inspect(path);
  const isOther = installation.isLost(facts) || installation.isForeign(facts);
  const hasWrongPepper = installation.hasWrongPepper(facts);
  if (!isOther && !hasWrongPepper) {
    io.report("--init: nothing is missing, and nothing was changed. Omit it from now on.");
    return;
  }
  const report = (line: string): void => io.report(`--init: ${line}`);
  if (isOther) report(`${describe(facts)} ${putAside(installation, io)}`);
  installation.keepPepper();
  const { connection } = openStores(path, io.clock);
  await using _ = connection;
  await connection.use(forgetPepper);
  if (!hasWrongPepper) return;
  const keys = facts.hasSecrets
    ? " None of its API keys works any more: rotate each (`keys rotate`)."
    : "";
  report(`${path} now belongs to the pepper of ${installation.pepper.source}.${keys}`);
}

function inspect(path: string): DatabaseFacts {
  try {
    return inspectFile(path);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError(
      `--init: the database ${path} cannot be read (${reason}). Restore it, or move it away ` +
        "to create a new one.",
    );
  }
}

function describe({ path, state }: DatabaseFacts): string {
  if (state === "filled") return `${path} is used from now on, with its content.`;
  return `the database ${path} was ${state}; a new one is created, without accounts and keys.`;
}

/** Moves away files that belong to the previous database. */
function putAside({ folder }: Installation, io: CommandIo): string {
  const name = `before-init-${new Date(io.clock.now()).toISOString().replaceAll(/[-:.]/g, "")}`;
  const lock = folder.hasSpool ? lockSpool(folder.spoolPath) : undefined;
  try {
    const { path, went } = folder.putAside(name);
    return went.length === 0
      ? ""
      : `Files of the previous database (${went.join(", ")}) are in ${path}.`;
  } finally {
    lock?.release();
  }
}

function lockSpool(path: string): FolderLock {
  try {
    return lockFolder(path);
  } catch (error) {
    throw new CommandError(`--init: ${error instanceof Error ? error.message : String(error)}`);
  }
}
