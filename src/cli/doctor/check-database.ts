import type { Config } from "../../config/config.ts";
import { StorageUnavailable, UnreadableUrlFile, WrongDatabase } from "../../store/errors.ts";
import type { DatabaseFacts } from "../../store/store.ts";
import {
  processDifferences,
  withDistinctNames,
} from "../../control/platform/process-differences.ts";
import { digestOfLimits } from "../../process/control/process-rows.ts";
import { Installation } from "../../store/installation/installation.ts";
import { inspectServer, type ServerFacts } from "../../store/postgres/connection/inspect-server.ts";
import { refuseOtherSchema } from "../../store/repositories/schema.ts";
import { inspectFile } from "../../store/sqlite/connection/open-database.ts";
import { type CommandIo, reasonOf } from "../command.ts";
import { type Finding, findingsOn } from "./finding.ts";
import { isMissing, lacksTls, needsTls } from "../../store/postgres/connection/postgres-trouble.ts";

const { ok, note, warning, failed } = findingsOn("database");
const oldestVersion = 140_000;
/** Ends of keys, sessions and days of usage are compared with times of several gateways. */
const wrongClockMs = 2_000;

type CheckedConfig = Pick<Config, "storage" | "dataDir" | "auth">;
type Services = Pick<CommandIo, "clock" | "random">;

/** Whether a gateway with this configuration would start on its database. */
export async function checkDatabase(
  config: CheckedConfig,
  services: Services,
): Promise<readonly Finding[]> {
  const { storage } = config;
  const { clock } = services;
  try {
    if (storage.backend === "sqlite") return checkFile(config, services);
    const facts = await inspectServer(storage.url.reveal(), () => clock.now());
    const { database } = facts;
    const owner = checkOwner(config, services, database);
    return [
      ...checkServer(facts),
      ...(owner.length > 0 ? owner : [checkSchema(database)]),
      checkClock(facts),
      checkConnections(facts, storage.poolSize),
    ];
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error;
    const url = storage.backend === "sqlite" ? "" : storage.url.reveal();
    return [failed(reasonOf(error), adviceOnDatabase(error, url))];
  }
}

/** Whether a gateway with this configuration would share limits with the live ones on its database. */
export async function checkOthers(
  { storage, limits }: Pick<Config, "storage" | "limits">,
  { clock }: Pick<CommandIo, "clock">,
): Promise<readonly Finding[]> {
  if (storage.backend === "sqlite") return [];
  const read = inspectServer(storage.url.reveal(), () => clock.now());
  // Why it cannot be read is among the findings.
  const { database, processes } = (await read.catch(() => undefined)) ?? {};
  if (processes === undefined) return [];
  const own = {
    id: "own-0",
    name: "this gateway",
    number: 1,
    adminUrl: "",
    startedAt: clock.now(),
    limitsDigest: digestOfLimits(limits.store, database?.installation),
    pepperMarks: undefined,
    silentMs: 0,
  };
  const differences = processDifferences([...withDistinctNames(processes), own]);
  return differences.map(({ text }) => findingsOn("gateways").failed(text));
}

/** A database in a file; the machine's findings have the rest. */
function checkFile(config: CheckedConfig, services: Services): readonly Finding[] {
  try {
    const facts = inspectFile(config.storage.path);
    const owner = checkOwner(config, services, facts);
    if (owner.length > 0 || facts.state === "missing") return owner;
    return [checkSchema(facts)];
  } catch (error) {
    return [preventsStart(error)];
  }
}

/** Whether data directory, pepper and database belong together, as each start checks it. */
function checkOwner(
  config: CheckedConfig,
  services: Services,
  facts: DatabaseFacts | undefined,
): readonly Finding[] {
  try {
    const owner = new Installation(config, services);
    if (facts !== undefined) owner.check(facts);
    return [];
  } catch (error) {
    if (!(error instanceof WrongDatabase)) return [preventsStart(error)];
    const { message, advice } = error;
    return [failed(message.slice(0, -`. ${advice}`.length), advice)];
  }
}

function preventsStart(error: unknown): Finding {
  return failed(reasonOf(error), "correct this: a gateway cannot start until it is");
}

function checkServer({ version, encoding, isReplica, isReadOnly }: ServerFacts): Finding[] {
  const shown = `PostgreSQL ${Math.floor(version / 10_000)}`;
  const findings = [
    version >= oldestVersion
      ? ok(`${shown} answers`)
      : failed(`${shown} is too old`, "upgrade the server to version 14 or newer"),
    encoding !== "UTF8" &&
      failed(`its encoding is ${encoding}`, "create the database with ENCODING 'UTF8'"),
    isReplica && failed("it is a replica", "name the primary server in storage.url"),
    isReadOnly &&
      !isReplica &&
      failed(
        "it is read-only",
        "set default_transaction_read_only off for the database and its user",
      ),
  ];
  return findings.filter((finding) => finding !== false);
}

function checkSchema(schema: DatabaseFacts | undefined): Finding {
  if (schema === undefined) {
    const advice =
      "make the user of storage.url the owner of the database and of all tables in its schema, " +
      "because the first start and updates of Sluice create tables";
    return failed("the user cannot create tables, or does not own them all", advice);
  }
  try {
    refuseOtherSchema(schema);
  } catch (error) {
    return preventsStart(error);
  }
  if (schema.version > 0) return ok(`its schema ${schema.version} is that of this version`);
  return note("it is empty: the first start creates its schema");
}

function checkClock({ aheadMs }: ServerFacts): Finding {
  const clock = findingsOn("clock");
  if (Math.abs(aheadMs) < wrongClockMs) return clock.ok("agrees with the database");
  const text = `${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? "behind" : "ahead of"} the database`;
  return clock.warning(text, "synchronise both clocks with NTP: gateways store their own times");
}

function checkConnections({ freeConnections }: ServerFacts, poolSize: number): Finding {
  const text = `${Math.max(freeConnections, 0)} connections left, of which a gateway takes up to ${poolSize + 1}`;
  if (freeConnections > poolSize) return ok(text);
  return warning(text, "raise max_connections of the server, or lower storage.pool_size");
}

function adviceOnDatabase(error: unknown, url: string): string {
  if (error instanceof UnreadableUrlFile) {
    return "correct the path, or let the user of the gateway read the file";
  }
  if (isMissing(error)) {
    const { username, pathname } = new URL(url);
    const [owner, name] = [username, pathname.slice(1)].map(decodeURIComponent);
    return (
      `create it, such as with \`createdb --owner ${owner} --encoding UTF8 --template template0 ${name}\` ` +
      "as a superuser of the server, or correct its name in storage.url"
    );
  }
  if (lacksTls(error)) return "turn TLS on at the server, or remove sslmode from storage.url";
  if (needsTls(error)) {
    return (
      "add an sslmode to storage.url, such as ?sslmode=verify-full, or have pg_hba.conf let this " +
      "machine in without TLS"
    );
  }
  return (
    "check the address, the user and the password of storage.url, firewalls, pg_hba.conf, and that " +
    "the server runs; `psql` with the same URL must connect from this machine"
  );
}
