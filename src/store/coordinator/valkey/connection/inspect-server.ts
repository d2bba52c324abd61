import type { ValkeyConnection } from "./valkey-connection.ts";

/** What decides whether limits can be counted in a server. */
export interface ValkeyFacts {
  /** Such as `Redis 7.0.15`. */
  readonly shown: string;
  readonly isNewEnough: boolean;
  readonly isOneOfCluster: boolean;
  /** Undefined: it keeps all keys, and refuses writes when its memory is full. */
  readonly eviction: string | undefined;
  /** Settings by which it restores older data after a restart, as far as the user may see them. */
  readonly persistence: readonly string[];
}

/** The least major and minor versions, as one number. */
const oldest = { valkey: 702, redis: 700 };

/** Throws `ValkeyUnavailable`. */
export async function inspectValkey(
  connection: Pick<ValkeyConnection, "send">,
): Promise<ValkeyFacts> {
  const report = String(await connection.send("sluice", "INFO", []));
  const read = (name: string): string | undefined =>
    new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(report)?.[1];
  const valkey = read("valkey_version");
  const version = valkey ?? read("redis_version") ?? "0";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const save = await readSave(connection);
  const policy = read("maxmemory_policy") ?? "noeviction";
  return {
    shown: `${valkey === undefined ? "Redis" : "Valkey"} ${version}`,
    isNewEnough: 100 * major + minor >= (valkey === undefined ? oldest.redis : oldest.valkey),
    isOneOfCluster: read("redis_mode") === "cluster" || read("server_mode") === "cluster",
    eviction: policy === "noeviction" || read("maxmemory") === "0" ? undefined : policy,
    persistence: [
      ...(save === "" ? [] : [`save "${save}"`]),
      ...(read("aof_enabled") === "1" ? ["appendonly yes"] : []),
    ],
  };
}

/** When it writes snapshots. Empty: never, or the user may not ask. */
async function readSave(connection: Pick<ValkeyConnection, "send">): Promise<string> {
  try {
    const answer = await connection.send("sluice", "CONFIG", ["GET", "save"]);
    const value: unknown = Array.isArray(answer) ? answer[1] : Object.values(answer ?? {})[0];
    return typeof value === "string" ? value : "";
  } catch {
    return "";
  }
}
