import { AdminRefusal, type AdminClient } from "../client/admin-client.ts";
import { connect, type ConnectionArguments } from "../client/connect.ts";
import type { CommandIo } from "../command.ts";
import type { ReplyRecord } from "../output/reply-fields.ts";
import { wordOf } from "./fields.ts";

/** Connects at the first request. Refusals name the options of the command line. */
export function connectLate(options: ReplyRecord, io: CommandIo): AdminClient {
  const chosen = readConnection(options);
  let connected: Promise<AdminClient> | undefined;
  const open = (): Promise<AdminClient> => (connected ??= connect(chosen, io));
  return {
    isOffline: chosen.isOffline,
    async request(method, path, details) {
      const client = await open();
      return client.request(method, path, details).catch(refuse);
    },
    async *stream(path, query) {
      try {
        yield* (await open()).stream(path, query);
      } catch (error) {
        refuse(error);
      }
    },
    async [Symbol.asyncDispose]() {
      // The failure to connect has already been reported.
      const client = await connected?.catch(() => undefined);
      await client?.[Symbol.asyncDispose]();
    },
  };
}

function readConnection(options: ReplyRecord): ConnectionArguments {
  const text = (name: string): string | undefined => {
    const value = options[name];
    return typeof value === "string" ? value : undefined;
  };
  return {
    url: text("url"),
    tokenFile: text("tokenFile"),
    isOffline: options["offline"] === true,
    config: text("config"),
    "data-dir": text("dataDir"),
  };
}

function refuse(error: unknown): never {
  if (!(error instanceof AdminRefusal)) throw error;
  const { status, code, message, param } = error;
  throw new AdminRefusal({ status, code, message: inOptions(message, param), param });
}

/** Replaces field names in a message of the admin API by options; `param` is the field at fault. */
export function inOptions(message: string, param: string | null): string {
  if (param === null) return message;
  const [, field = "", index] = /^([^[]*)(?:\[(\d+)\])?/.exec(param) ?? [];
  const named = index === undefined ? wordOf(field) : `${wordOf(field)} (no. ${Number(index) + 1})`;
  return message.replaceAll(`'${param}'`, named).replaceAll("parameter: --", "option: --");
}
