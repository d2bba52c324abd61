import type { Config } from "../../config/config.ts";
import { parseValkeyUrl } from "../../domain/addresses.ts";
import { clientOf } from "../../process/wiring/open-valkey-limits.ts";
import type { ValkeyClient } from "../../store/limits/valkey/client.ts";
import { checkScript, correctScript } from "../../store/limits/valkey/limit-scripts.ts";
import { problemOf, type ProblemKind } from "../../store/limits/valkey/problems.ts";
import { WindowNames } from "../../store/limits/valkey/scopes.ts";
import { slotScript } from "../../store/limits/valkey/slot-store.ts";
import { type CommandIo, reasonOf } from "../command.ts";
import type { Finding } from "./finding.ts";

const subject = "limits";
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
    return [...(await checkScripts(client, facts)), await checkTrip(client, store, clock)];
  } catch (error) {
    const { kind, text } = problemOf(error);
    return [
      failed(`${store.name}: ${text}`, adviceOnLimitStore(kind === "script" ? "other" : kind)),
    ];
  } finally {
    client.close();
  }
}

/** What decides whether limits can be counted in a server. */
interface ServerFacts {
  /** Such as `Redis 7.0.15`. */
  readonly shown: string;
  readonly isNewEnough: boolean;
  readonly isOneOfCluster: boolean;
  readonly isReplica: boolean;
  /** Undefined: it keeps all keys, and refuses writes when its memory is full. */
  readonly eviction: string | undefined;
}

/** The least major and minor versions, as one number. */
const oldest = { valkey: 702, redis: 700 };

function readFacts(report: string): ServerFacts {
  const read = (name: string): string | undefined =>
    new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(report)?.[1];
  const valkey = read("valkey_version");
  const version = valkey ?? read("redis_version") ?? "0";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const policy = read("maxmemory_policy") ?? "noeviction";
  return {
    shown: `${valkey === undefined ? "Redis" : "Valkey"} ${version}`,
    isNewEnough: 100 * major + minor >= (valkey === undefined ? oldest.redis : oldest.valkey),
    isOneOfCluster: read("redis_mode") === "cluster" || read("server_mode") === "cluster",
    isReplica: read("role") === "slave",
    eviction: policy === "noeviction" || read("maxmemory") === "0" ? undefined : policy,
  };
}

function checkFacts(facts: ServerFacts, isCluster: boolean): readonly Finding[] {
  const { shown, isNewEnough, isOneOfCluster, isReplica, eviction } = facts;
  const findings: Finding[] = [];
  if (isReplica && !isCluster) {
    findings.push(failed("it is a replica", adviceOnLimitStore("replica")));
  }
  if (!isNewEnough) {
    const advice = "upgrade the server to Valkey 7.2 or Redis 7, or newer";
    findings.push(failed(`${shown} is too old`, advice));
  }
  if (isOneOfCluster && !isCluster) {
    const advice = "write limits.store as valkey+cluster://, with some of its servers";
    findings.push(failed("the server is part of a cluster", advice));
  }
  if (eviction !== undefined) {
    const advice =
      "set maxmemory-policy of the server to noeviction: after each eviction, every process " +
      "grants only its share of all limits for a minute";
    findings.push(failed(`the server evicts keys (${eviction})`, advice));
  }
  return findings;
}

/** Runs the scripts, which need the rights of all. What they leave expires in a minute. */
async function checkScripts(
  client: ValkeyClient,
  { shown }: ServerFacts,
): Promise<readonly Finding[]> {
  const { sinceKeys } = new WindowNames(client.shards);
  const [sinceKey = ""] = sinceKeys;
  try {
    await Promise.all(sinceKeys.map((key) => client.run(checkScript, [key], [])));
    await client.run(correctScript, [sinceKey, "sluice:{0}:doctor"], ["doctor", 61, 1, 0]);
    for (const more of [1, 0]) {
      await client.run(slotScript, ["sluice:{0}:slots:doctor"], ["doctor", 1, 0, more, 1_000]);
    }
    return [{ state: "ok", subject, text: `${shown} answers and decides` }];
  } catch (error) {
    const text = `the server does not decide: ${reasonOf(error)}`;
    return [failed(text, adviceOnLimitStore("rights"))];
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
  if (2 * tripMs <= mostMs) return { state: "ok", subject, text };
  const advice = `move the server closer, or raise limits.timeout (${mostMs} ms)`;
  return { state: "warning", subject, text, advice };
}

function failed(text: string, advice: string): Finding {
  return { state: "failed", subject, text, advice };
}

/** What to do when the server of `limits.store` cannot be used. */
function adviceOnLimitStore(kind: ProblemKind): string {
  switch (kind) {
    case "refused":
      return "start the server, or correct the host and port of limits.store: nothing listens there";
    case "unknown-host":
      return "correct the host in limits.store, or the name server of this machine";
    case "silent":
      return "check that the server runs and is not stuck, the host of limits.store, and firewalls";
    case "certificate":
      return (
        "set limits.ca to the authority that signed the certificate of the server, and write the " +
        "host in limits.store as the certificate names it"
      );
    case "encryption":
      return "write limits.store as valkeys:// for a server with TLS, and as valkey:// for one without";
    case "password":
      return "correct the user and the password in limits.store, or create that user on the server";
    case "rights":
      return "give the user of limits.store the rights that docs/operations.md lists";
    case "replica":
      return "check the address in limits.store: of a primary, or of the Sentinels that know it";
    case "other":
      return (
        "check the server, and limits.store: `redis-cli` with the same address, user and password " +
        "must connect from here"
      );
    default:
      return kind satisfies never;
  }
}
