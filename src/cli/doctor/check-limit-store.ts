import type { Config } from "../../config/config.ts";
import { parseValkeyUrl } from "../../domain/addresses/valkey-address.ts";
import { minuteScopes } from "../../domain/limits/limit-scope.ts";
import { connectLimitStore } from "../../process/wiring/limits/connect-limit-store.ts";
import { sharedScripts } from "../../process/wiring/limits/shared-scripts.ts";
import {
  inspectValkey,
  type ValkeyFacts,
} from "../../store/coordinator/valkey/connection/inspect-server.ts";
import type { ValkeyConnection } from "../../store/coordinator/valkey/connection/valkey-connection.ts";
import { problemOf } from "../../store/coordinator/valkey/connection/valkey-errors.ts";
import { fleetScript } from "../../store/coordinator/valkey/fleet/fleet-script.ts";
import { ValkeyLimits } from "../../store/coordinator/valkey/limits/valkey-limits.ts";
import { type CommandIo, reasonOf } from "../command.ts";
import type { Finding } from "./finding.ts";
import type { ProblemKind } from "../../store/coordinator/valkey/connection/connection-problem.ts";

const subject = "limits";
const timeoutMs = 5_000;
const trips = 5;

/** Whether the server of `limits.store` can be used. No findings for limits in memory. */
export async function checkLimitStore(
  { limits: { store } }: Pick<Config, "limits">,
  { clock }: Pick<CommandIo, "clock">,
): Promise<readonly Finding[]> {
  if (store === "memory") return [];
  const connection = connectLimitStore(store, { timeoutMs, clock, scripts: sharedScripts });
  try {
    await connection.open();
    const facts = await inspectValkey(connection);
    const isCluster = parseValkeyUrl(store.url.reveal())?.topology === "cluster";
    const found = checkFacts(facts, isCluster);
    if (found.length > 0) return found;
    return [
      await checkDecision(connection, facts),
      await checkTrip(connection, store, clock),
      ...(isCluster ? checkPersistence(facts) : []),
    ];
  } catch (error) {
    const { kind, text } = problemOf(error);
    return [failed(`${store.name}: ${text}`, adviceOnLimitStore(kind))];
  } finally {
    connection.close();
  }
}

function checkFacts(facts: ValkeyFacts, isCluster: boolean): readonly Finding[] {
  const { shown, isNewEnough, isOneOfCluster, eviction } = facts;
  const findings: Finding[] = [];
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
      "set maxmemory-policy of the server to noeviction: a key that it evicts loses what was " +
      "counted, and its owner may use its limit again";
    findings.push(failed(`the server evicts keys (${eviction})`, advice));
  }
  return findings;
}

/** In a cluster, gateways cannot tell of most servers that they have forgotten something. */
function checkPersistence({ persistence }: ValkeyFacts): readonly Finding[] {
  if (persistence.length === 0) return [];
  const text = `servers come back with older data after a restart (${persistence.join(", ")})`;
  const advice =
    'set save "" and appendonly no: gateways restore what an empty server needs, but in a cluster ' +
    "do not notice data that is minutes old";
  return [{ state: "warning", subject, text, advice }];
}

/** Makes one decision, which needs the rights of all. What it leaves expires in a minute. */
async function checkDecision(
  connection: ValkeyConnection,
  { shown }: ValkeyFacts,
): Promise<Finding> {
  const limits = new ValkeyLimits({ connection, random: Math.random, reservationTtlMs: 60_000 });
  const scopes = minuteScopes("doctor", { requestsPerMinute: 1e6, tokensPerMinute: 1e6 });
  try {
    const known = { epoch: "", mayWait: false };
    await limits.acquire({ callId: crypto.randomUUID(), scopes, tokens: 1 }, known);
    await reportTo(connection);
    return { state: "ok", subject, text: `${shown} answers and decides` };
  } catch (error) {
    const text = `the server does not decide: ${reasonOf(error)}`;
    return failed(text, adviceOnLimitStore("rights"));
  }
}

/** As a worker does each second, under other keys. */
async function reportTo(connection: ValkeyConnection): Promise<void> {
  const key = "sluice:{doctor}:workers";
  const report = ["doctor", "5000", "sluice:doctor", "", "memory", "0", "0"];
  await connection.run(fleetScript, [key, `${key}:state`], report);
}

/** The median: the first one also waits for the program. */
async function checkTrip(
  connection: ValkeyConnection,
  { timeoutMs: mostMs }: { readonly timeoutMs: number },
  clock: CommandIo["clock"],
): Promise<Finding> {
  const tripsMs: number[] = [];
  while (tripsMs.length < trips) {
    const startedAt = clock.monotonic();
    await connection.send("sluice", "PING", []);
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
