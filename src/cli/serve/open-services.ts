import type { AdminServices } from "../../control/services.ts";
import { Passwords } from "../../control/sign-in/guard/passwords.ts";
import type { Config } from "../../config/config.ts";
import { type DatabaseStores, openDatabaseStores } from "../../process/wiring/database-stores.ts";
import { platformOf } from "../../process/wiring/control-plane.ts";
import { Installation } from "../../store/installation/installation.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import { WrongDatabase } from "../../store/errors.ts";
import { CommandError, reasonOf, type CommandIo } from "../command.ts";

export interface LocalServices extends AdminServices {
  readonly passwords: Passwords;
}

export interface OpenServices extends AsyncDisposable {
  readonly admin: LocalServices;
}

/** Opens the control plane on the database, which a running gateway may be using. */
export async function openServices(config: Config, io: CommandIo): Promise<OpenServices> {
  const owner = new Installation(config, io);
  const { peppers } = owner;
  const stores = openDatabaseStores(config.storage, io.clock, { owner });
  const { connection } = stores;
  try {
    await connection.open();
    return {
      admin: createServices({ stores, config, peppers, io }),
      [Symbol.asyncDispose]: () => connection.close(),
    };
  } catch (error) {
    await connection.close();
    if (error instanceof WrongDatabase) throw new CommandError(error.message);
    throw new CommandError(`${config.storage.path} cannot be used: ${reasonOf(error)}`);
  }
}

interface ServiceParts {
  readonly stores: DatabaseStores;
  readonly config: Config;
  readonly peppers: Peppers;
  readonly io: CommandIo;
}

function createServices({ stores, config, peppers, io }: ServiceParts): LocalServices {
  const { clock, random } = io;
  const services: AdminServices = {
    store: stores.control,
    reports: stores.reports,
    usage: stores.usage,
    // Refusals exist only in the memory of the gateway.
    refusals: { find: async () => undefined, list: async () => [] },
    clock,
    random,
    peppers,
    platform: () => platformOf(config),
    processes: () => Promise.resolve([]),
    lastUse: () => undefined,
    // Running gateways poll the database.
    onKeysChanged: () => Promise.resolve(undefined),
    processRows: () => Promise.resolve([]),
  };
  return { ...services, passwords: new Passwords() };
}
