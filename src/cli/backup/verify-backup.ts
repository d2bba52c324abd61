import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config/config.ts";
import { Peppers } from "../../domain/keys/peppers.ts";
import { Secret } from "../../domain/keys/secret.ts";
import type { DatabaseFacts } from "../../store/installation.ts";
import { OtherSchema } from "../../store/errors.ts";
import { refuseOtherSchema } from "../../store/schema-version.ts";
import { examineDatabase } from "../../store/sqlite/connection/examine-database.ts";
import { inspectFile } from "../../store/sqlite/connection/inspect-file.ts";
import { inspectDatabase } from "../../store/sqlite/connection/open-database.ts";
import { CommandError } from "../command.ts";
import { readTextFile } from "../read-input.ts";
import { digestOf, parts, readManifest, type Manifest } from "./backup-folder.ts";

export interface VerifiedBackup {
  readonly manifest: Manifest;
  readonly facts: DatabaseFacts;
}

/**
 * Checks that a backup is complete, and that this program can use it with the peppers of a
 * configuration. Throws `CommandError`.
 */
export async function verifyBackup(
  folder: string,
  config: Pick<Config, "auth">,
): Promise<VerifiedBackup> {
  const manifest = readManifest(folder);
  for (const [name, digest] of Object.entries(manifest.files)) {
    const path = join(folder, name);
    if (!existsSync(path)) throw new CommandError(`the backup is damaged: ${path} is missing`);
    if ((await digestOf(path)) !== digest) {
      throw new CommandError(`the backup is damaged: ${path} is not what was written`);
    }
  }
  const facts = await checkDatabase(join(folder, parts.database), manifest);
  checkPepper(folder, config, facts);
  return { manifest, facts };
}

async function checkDatabase(path: string, { version }: Manifest): Promise<DatabaseFacts> {
  const problem = await examineDatabase(path);
  if (problem !== undefined) throw new CommandError(`${path} is damaged: ${problem}`);
  try {
    refuseOtherSchema(inspectFile(path).schema);
  } catch (error) {
    if (!(error instanceof OtherSchema)) throw error;
    throw new CommandError(`${path} is of Sluice ${version}: ${error.message}`);
  }
  return inspectDatabase(path);
}

/**
 * Uses the peppers of the configuration, as at a start, or that of the backup if there are none.
 */
function checkPepper(
  folder: string,
  { auth }: Pick<Config, "auth">,
  { pepperMark }: DatabaseFacts,
): void {
  const path = join(folder, parts.pepper);
  const [first, ...older] = auth.peppers;
  if (first === undefined && !existsSync(path)) {
    throw new CommandError("the backup has no pepper: name the one of its keys in auth.peppers");
  }
  if (pepperMark === undefined) return;
  const peppers = new Peppers(first ?? new Secret(readTextFile(path).trim()), older);
  if (peppers.find(pepperMark) !== undefined) return;
  const source = first === undefined ? path : "auth.peppers";
  throw new CommandError(`the keys of the backup need another pepper than that of ${source}`);
}
