import { Download } from "../../control/operation/download.ts";
import type { OperationCall } from "../../control/operation/operation.ts";
import { adminOperations } from "../../control/operations.ts";
import { createRunOffline } from "../../control/operation/run-offline.ts";
import { localPrincipal } from "../../control/sign-in/services.ts";
import type { Config } from "../../config/config.ts";
import { requestIds } from "../../domain/request-trace.ts";
import {
  readRefusal,
  textsOf,
  type AdminClient,
  type AdminMethod,
  type AdminRequestDetails,
} from "./admin-client.ts";
import { CommandError, type CommandIo } from "../command.ts";
import { openServices } from "../serve/open-services.ts";

/** Runs the operations of the control plane in this process. */
export async function createOfflineClient(config: Config, io: CommandIo): Promise<AdminClient> {
  const opened = await openServices(config, io);
  const { admin } = opened;
  const run = createRunOffline(admin, adminOperations(admin));
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
      const download = await ask("GET", path, { query });
      if (!(download instanceof Download)) throw new CommandError(`${path} is no download`);
      const encoder = new TextEncoder();
      for await (const text of download.chunks) yield encoder.encode(text);
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

function createCall(io: CommandIo): OperationCall {
  return {
    id: requestIds(() => io.clock.now(), io.random)(),
    principal: localPrincipal(),
    signal: io.signal,
    address: undefined,
  };
}
