import type { Config } from "../../config/config.ts";
import { parseValkeyUrl } from "../../domain/addresses.ts";
import { clientOf } from "../../process/wiring/open-valkey-limits.ts";
import type { ValkeyClient } from "../../store/limits/valkey/client.ts";
import { checkScript, correctScript } from "../../store/limits/valkey/limit-scripts.ts";
import { problemOf, type ProblemKind } from "../../store/limits/valkey/problems.ts";
import { WindowNames } from "../../store/limits/valkey/scopes.ts";
import { slotScript } from "../../store/limits/valkey/slot-store.ts";
import { type CommandIo, reasonOf } from "../command.ts";
import { type Finding, findingsOn } from "./finding.ts";

const { ok, warning, failed } = findingsOn("limits");
const timeoutMs = 5_000;
const trips = 5;

/** Whether the server of `limits.store` can be used. No findings for limits in memory. */
export async function checkLimitStore(
  { limits: { store } }: Pick<Config, "limits">,
  { clock }: Pick<CommandIo, "clock">,
): Promise<readonly Finding[]> {
  if (store === "memory") return [];
  const client = clientOf(store, timeoutMs);
  try {
    await client.open();
    const facts = readFacts(String(await client.send("INFO", [])));
    const isCluster = parseValkeyUrl(store.url.reveal())?.topology === "cluster";
    const found = checkFacts(facts, isCluster);
    if (found.length > 0) return found;
    return [await checkScripts(client, facts.shown), await checkTrip(client, store, clock)];
  } catch (error) {
    const { kind, text } = problemOf(error);
    return [failed(`${store.name}: ${text}`, adviceOn[kind === "script" ? "other" : kind])];
  } finally {
    client.close();
  }
}

/** The least major and minor versions, as one number. */
const oldest = { valkey: 702, redis: 700 };

/** What decides whether limits can be counted in a server; `shown` is such as `Redis 7.0.15`. */
function readFacts(report: string) {
  const read = (name: string): string | undefined =>
    new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(report)?.[1];
  const valkey = read("valkey_version");
  const version = valkey ?? read("redis_version") ?? "0";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const policy = read("maxmemory_policy") ?? "noeviction";
  return {
    shown: `${valkey === undefined ? "Redis" : "Valkey"} ${version}`,
    isOld: 100 * major + minor < (valkey === undefined ? oldest.redis : oldest.valkey),
    isOneOfCluster: read("redis_mode") === "cluster" || read("server_mode") === "cluster",
    isReplica: read("role") === "slave",
    /** Undefined: it keeps all keys, and refuses writes when its memory is full. */
    eviction: policy === "noeviction" || read("maxmemory") === "0" ? undefined : policy,
  };
}

function checkFacts(
  { shown, isOld, isOneOfCluster, isReplica, eviction }: ReturnType<typeof readFacts>,
  isCluster: boolean,
): readonly Finding[] {
  const problems = [
    isReplica && !isCluster && failed("it is a replica", adviceOn.replica),
    isOld && failed(`${shown} is too old`, "upgrade the server to Valkey 7.2 or Redis 7, or newer"),
    isOneOfCluster &&
      !isCluster &&
      failed(
        "the server is part of a cluster",
        "write limits.store as valkey+cluster://, with some of its servers",
      ),
    eviction !== undefined &&
      failed(
        `the server evicts keys (${eviction})`,
        "set maxmemory-policy of the server to noeviction: after each eviction, every process " +
          "grants only its share of all limits for a minute",
      ),
  ];
  return problems.filter((problem) => problem !== false);
}

/** Runs the scripts, which need the rights of all. What they leave expires in a minute. */
async function checkScripts(client: ValkeyClient, shown: string): Promise<Finding> {
  const { sinceKeys } = new WindowNames(client.shards);
  const [sinceKey = ""] = sinceKeys;
  try {
    await Promise.all(sinceKeys.map((key) => client.run(checkScript, [key], [])));
    await client.run(correctScript, [sinceKey, "sluice:{0}:doctor"], ["doctor", 61, 1, 0]);
    for (const more of [1, 0]) {
      await client.run(slotScript, ["sluice:{0}:slots:doctor"], ["doctor", 1, 0, more, 1_000]);
    }
    return ok(`${shown} answers and decides`);
  } catch (error) {
    return failed(`the server does not decide: ${reasonOf(error)}`, adviceOn.rights);
  }
}

/** The median: the first one also waits for the program. */
async function checkTrip(
  client: ValkeyClient,
  { timeoutMs: mostMs }: { readonly timeoutMs: number },
  clock: CommandIo["clock"],
): Promise<Finding> {
  const tripsMs: number[] = [];
  while (tripsMs.length < trips) {
    const startedAt = clock.monotonic();
    await client.send("PING", []);
    tripsMs.push(clock.monotonic() - startedAt);
  }
  const tripMs = tripsMs.toSorted((one, other) => one - other)[Math.floor(trips / 2)] ?? 0;
  const text = `an answer of the server takes ${tripMs.toFixed(1)} ms`;
  if (2 * tripMs <= mostMs) return ok(text);
  return warning(text, `move the server closer, or raise limits.timeout (${mostMs} ms)`);
}

const adviceOn: Readonly<Record<ProblemKind, string>> = {
  refused: "start the server, or correct the host and port of limits.store: nothing listens there",
  "unknown-host": "correct the host in limits.store, or the name server of this machine",
  silent: "check that the server runs and is not stuck, the host of limits.store, and firewalls",
  certificate:
    "set limits.ca to the authority that signed the certificate of the server, and write the host " +
    "in limits.store as the certificate names it",
  encryption:
    "write limits.store as valkeys:// for a server with TLS, and as valkey:// for one without",
  password: "correct the user and the password in limits.store, or create that user on the server",
  rights: "give the user of limits.store the rights that docs/operations.md lists",
  replica: "check the address in limits.store: of a primary, or of the Sentinels that know it",
  topology: "write limits.store as valkey://, or as valkeys:// for a server with TLS",
  database:
    "end limits.store with the number of a database that the server has (its setting `databases`) " +
    "and that no other installation uses",
  other:
    "check the server, and limits.store: `redis-cli` with the same address, user and password must " +
    "connect from here",
};
