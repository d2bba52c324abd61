import type { AdminServices } from "../admin/services.ts";
import { Passwords } from "../admin/sign-in/passwords.ts";
import type { Config } from "../config/config.ts";
import { loadPepper } from "../config/pepper.ts";
import { platformOf } from "../control-plane.ts";
import { createKeyDigest } from "../pipeline/authenticate.ts";
import { openStores, type SqliteStores } from "../storage/sqlite/open-stores.ts";
import { CommandError, type CommandIo } from "./command.ts";

export interface LocalServices extends AdminServices {
  readonly passwords: Passwords;
}

export interface OpenServices extends AsyncDisposable {
  readonly admin: LocalServices;
}

/** The control plane on the database of a configuration, beside a gateway that may run on it. */
export async function openServices(config: Config, io: CommandIo): Promise<OpenServices> {
  const stores = openStores(config.storage.path, io.clock);
  const { connection } = stores;
  try {
    await connection.open();
    return {
      admin: createServices(stores, config, io),
      [Symbol.asyncDispose]: () => connection.close(),
    };
  } catch (error) {
    await connection.close();
    throw new CommandError(`${config.storage.path} cannot be used: ${reasonOf(error)}`);
  }
}

function createServices(stores: SqliteStores, config: Config, io: CommandIo): LocalServices {
  const { clock, random } = io;
  const pepper = loadPepper({ configured: config.auth.pepper, dataDir: config.dataDir, random });
  const services: AdminServices = {
    store: stores.control,
    reports: stores.reports,
    usage: stores.usage,
    // What was refused is remembered by the process that refused it.
    refusals: { find: () => undefined, list: () => [] },
    clock,
    random,
    digest: createKeyDigest(pepper.reveal()),
    platform: () => platformOf(config),
    lastUse: () => undefined,
    // Gateways notice by themselves.
    onKeysChanged: () => Promise.resolve(),
  };
  return { ...services, passwords: new Passwords() };
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${reasonOf(error.cause)}`;
}
