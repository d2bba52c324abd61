import type { OperationCall } from "../../control/operation/operation.ts";
import { adminOperations } from "../../control/operations.ts";
import { createRunOffline } from "../../control/operation/run-offline.ts";
import { localPrincipal } from "../../control/sign-in/services.ts";
import type { AdminServices } from "../../control/services.ts";
import { Passwords } from "../../control/sign-in/guard/passwords.ts";
import type { Config } from "../../config/config.ts";
import { addressUrl } from "../../domain/network.ts";
import { type DatabaseStores, openDatabaseStores } from "../../process/wiring/database-stores.ts";
import { platformOf } from "../../process/control/admin-plane.ts";
import { Installation } from "../../store/installation/installation.ts";
import type { Peppers } from "../../domain/keys/peppers.ts";
import { WrongDatabase } from "../../store/errors.ts";
import {
  readRefusal,
  textsOf,
  type AdminClient,
  type AdminMethod,
  type AdminRequestDetails,
} from "./admin-client.ts";
import { CommandError, type CommandIo, reasonOf } from "../command.ts";
import { newRequestId } from "../../process/program.ts";

/** Runs the operations of the control plane in this process. */
export async function createOfflineClient(config: Config, io: CommandIo): Promise<AdminClient> {
  const stores = await openStores(config, io);
  const services = servicesOf(stores, config, io);
  const run = createRunOffline(
    services,
    adminOperations({
      ...services,
      passwords: new Passwords(),
      settings: config.admin,
      publicUrl: () => config.admin.publicUrl ?? addressUrl(config.listen.admin),
    }),
  );
  const ask = async (
    method: AdminMethod,
    path: string,
    { query = {}, ...details }: AdminRequestDetails,
  ): Promise<unknown> => {
    const texts = textsOf(query);
    const request = { ...details, method, path: `/admin/v1${path}`, query: texts };
    const { status, body } = await run({ ...request, call: createCall(io) });
    if (status >= 400) throw readRefusal(status, body);
    return body;
  };
  return {
    isOffline: true,
    request: (method, path, details = {}) => ask(method, path, details),
    async *stream(path, query) {
      const answer = await ask("GET", path, { query });
      if (!(answer instanceof Response)) throw new CommandError(`${path} is no download`);
      yield* answer.body ?? [];
    },
    [Symbol.asyncDispose]: () => stores.connection.close(),
  };
}

function createCall(io: CommandIo): OperationCall {
  return {
    id: newRequestId(io.clock),
    principal: localPrincipal(),
    signal: io.signal,
    address: undefined,
  };
}

interface OpenStores extends DatabaseStores {
  readonly peppers: Peppers;
}

/** Opens the database, which a running gateway may be using. */
async function openStores(config: Config, io: CommandIo): Promise<OpenStores> {
  const owner = new Installation(config, io);
  const stores = openDatabaseStores(config.storage, io.clock, { owner, peppers: owner.peppers });
  try {
    await stores.connection.open();
    return { ...stores, peppers: owner.peppers };
  } catch (error) {
    await stores.connection.close();
    if (error instanceof WrongDatabase) throw new CommandError(error.message);
    throw new CommandError(`${config.storage.path} cannot be used: ${reasonOf(error)}`);
  }
}

function servicesOf(
  { control: store, prices, reports, costs, usage, peppers }: OpenStores,
  config: Config,
  { clock, random }: CommandIo,
): AdminServices {
  return {
    store,
    prices,
    reports,
    costs,
    usage,
    clock,
    random,
    peppers,
    platform: () => platformOf(config),
    configuration: () => ({ path: undefined, loadedAt: clock.now(), settings: [] }),
    // Only a running gateway has refusals and processes, and the others poll the database.
    refusals: { find: async () => undefined, list: async () => [] },
    live: { machine: "", facts: async () => [], limits: async () => [] },
    processes: async () => [],
    processRows: async () => [],
    lastProcessRows: async () => [],
    lastUse: () => undefined,
    onKeysChanged: async () => undefined,
  };
}
