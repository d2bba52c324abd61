import type { Config } from "../../config/config.ts";
import { StorageUnavailable } from "../../store/errors.ts";
import { Installation, type InstallationServices } from "../../store/installation/installation.ts";
import { refuseOtherSchema } from "../../store/schema-version.ts";
import { inspectStorage } from "../wiring/inspect-storage.ts";

/**
 * Checks what a start of control checks: pepper, installation and schema. Changes nothing, because
 * another process is using them. Throws `UnusableDatabase`. Passes if the database cannot be reached,
 * because a start waits for it.
 */
export async function checkStart(
  config: Pick<Config, "storage" | "dataDir" | "auth">,
  services: InstallationServices,
): Promise<void> {
  const { storage } = config;
  const owner = new Installation(config, services);
  const facts = await inspectStorage(storage, services.clock).catch(passUnavailable);
  if (facts === undefined) return;
  if (facts.database !== undefined) owner.check(facts.database);
  if (facts.schema !== undefined) refuseOtherSchema(facts.schema);
}

function passUnavailable(error: unknown): undefined {
  if (!(error instanceof StorageUnavailable)) throw error;
  return undefined;
}
