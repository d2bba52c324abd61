import type { Config } from "../../config/config.ts";
import { parseArgs } from "node:util";
import { AskedToEnd, UsageError } from "../command.ts";
import { readAddress, type SettingsArguments } from "./load-settings.ts";

const options = {
  config: { type: "string", short: "c" },
  "data-dir": { type: "string" },
  data: { type: "string" },
  admin: { type: "string" },
} as const;

export interface ServeArguments extends SettingsArguments {
  readonly data?: string | undefined;
  readonly admin?: string | undefined;
}

/** Throws `UsageError`. */
export function readServeArguments(args: readonly string[]): ServeArguments {
  const { values, positionals } = parse(args);
  if (positionals.length > 0) throw new UsageError(`serve does not take '${positionals[0]}'`);
  return values;
}

/** By the runtime's parser: the processes of a gateway do not load that of the command line. */
function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // The first sentence names the option; the rest is about quoting.
    const [sentence = ""] = (error instanceof Error ? error.message : "").split(". ", 1);
    throw new UsageError(sentence);
  }
}

export function withListeners(config: Config, { data, admin }: ServeArguments): Config {
  const listen = {
    data: data === undefined ? config.listen.data : readAddress(data),
    admin: admin === undefined ? config.listen.admin : readAddress(admin),
  };
  const { hostname, port } = listen.data;
  if (port !== 0 && hostname === listen.admin.hostname && port === listen.admin.port) {
    const other = admin === undefined ? "--admin" : "--data";
    throw new UsageError(
      `the data and the admin listener have the same address, ${hostname}:${port}; ` +
        `name another one with ${other} HOST:PORT`,
    );
  }
  return { ...config, listen };
}

/** Arguments that make a successor serve on the port that the system has chosen. */
export function fixedAddress(listener: "data" | "admin", port: number, url: string) {
  return port === 0 ? [`--${listener}`, new URL(url).host] : [];
}

/** Whether a person at a terminal ends the process, which skips the wait for load balancers. */
export function isAskedByPerson({ reason }: AbortSignal): boolean {
  return reason instanceof AskedToEnd && reason.by === "SIGINT";
}
