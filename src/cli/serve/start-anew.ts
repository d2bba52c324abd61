import type { Config } from "../../config/config.ts";
import { Installation } from "../../store/installation/installation.ts";
import { lockFolder, type FolderLock } from "../../ledger/spool/folder-lock.ts";
import type { DatabaseFacts } from "../../store/installation.ts";
import { AuditEnds } from "../../store/repositories/audit/audit-ends.ts";
import { forgetPepper } from "../../store/sqlite/connection/installation-row.ts";
import { inspectDatabase } from "../../store/sqlite/connection/open-database.ts";
import { openStores } from "../../store/sqlite/open-stores.ts";
import { CommandError, type CommandIo } from "../command.ts";

/**
 * Makes the existing data directory, pepper and database belong together, so the next start finds
 * nothing missing. Removes nothing, reports its changes, and does nothing when nothing is missing.
 */
export async function startAnew(config: Config, io: CommandIo): Promise<void> {
  const { path } = config.storage;
  const installation = new Installation(config, io);
  const facts = inspect(path);
  const isOther = installation.isLost(facts) || installation.isForeign(facts);
  const hasWrongPepper = installation.hasWrongPepper(facts);
  if (!isOther && !hasWrongPepper) {
    io.report("--init: nothing is missing, and nothing was changed. Leave it out from now on.");
    return;
  }
  const report = (line: string): void => io.report(`--init: ${line}`);
  if (isOther) report(`${describe(facts)} ${putAside(installation, io)}`);
  installation.keepPepper();
  const { connection } = openStores(path, io.clock, { peppers: installation.peppers });
  await using _ = connection;
  await connection.use(forgetPepper);
  if (!hasWrongPepper) return;
  await connection.change((queries) => new AuditEnds(queries, connection.seals).sealAll());
  report(
    "the audit is sealed anew as it is: nothing tells any more whether it was changed before.",
  );
  const keys = facts.hasSecrets
    ? " None of the API keys in it works any more: rotate each (`keys rotate`)."
    : "";
  report(`${path} goes with the pepper of ${installation.pepper.source} from now on.${keys}`);
}

function inspect(path: string): DatabaseFacts {
  try {
    return inspectDatabase(path);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError(
      `--init: the database ${path} cannot be read (${reason}). Restore it, or move it away for a new one.`,
    );
  }
}

function describe({ path, state }: DatabaseFacts): string {
  if (state === "filled") return `${path} is used from now on, with all that is in it.`;
  return `the database ${path} was ${state}; a new one is made, without accounts and keys.`;
}

/** Moves away files that belong to the previous database. */
function putAside({ folder }: Installation, io: CommandIo): string {
  const name = `before-init-${new Date(io.clock.now()).toISOString().replaceAll(/[-:.]/g, "")}`;
  const lock = folder.hasSpool ? lockSpool(folder.spoolPath) : undefined;
  try {
    const { path, went } = folder.putAside(name);
    return went.length === 0
      ? ""
      : `What was kept for the one before (${went.join(", ")}) is in ${path}.`;
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
