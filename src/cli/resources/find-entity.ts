import type { AdminClient, AdminQuery } from "../client/admin-client.ts";
import { CommandError, UsageError } from "../command.ts";
import { commandLine } from "../program.ts";
import {
  cellOf,
  readRecord,
  readRecords,
  readText,
  type ReplyRecord,
} from "../output/reply-fields.ts";

/** Where a thing of a name is looked for. */
export interface Places {
  readonly account?: string | undefined;
  readonly environment?: string | undefined;
}

/** An account by its id or name. */
export function findAccount(client: AdminClient, named: string): Promise<ReplyRecord> {
  if (isId("acct", named)) return readOne(client, "/accounts", named);
  return findByName(client, { path: "/accounts", query: { name: named }, noun: "account", named });
}

/** The id that a filter asks for; undefined when it asks for none. */
export async function findAccountId(
  client: AdminClient,
  named: string | undefined,
): Promise<string | undefined> {
  if (named === undefined || isId("acct", named)) return named;
  return readText(await findAccount(client, named), "id");
}

/** An application by its id, or by its name where the name is unique. */
export async function findApplication(
  client: AdminClient,
  named: string,
  places: Places = {},
): Promise<ReplyRecord> {
  if (isId("app", named)) return readOne(client, "/applications", named);
  const account_id = await findAccountId(client, places.account);
  const query = { name: named, account_id, environment: places.environment };
  return findByName(client, { path: "/applications", query, noun: "application", named });
}

export async function findApplicationId(
  client: AdminClient,
  named: string | undefined,
  places: Places = {},
): Promise<string | undefined> {
  if (named === undefined || isId("app", named)) return named;
  return readText(await findApplication(client, named, places), "id");
}

/** A user by its id or email address. */
export function findUser(client: AdminClient, named: string): Promise<ReplyRecord> {
  if (isId("user", named)) return readOne(client, "/users", named);
  const email = named.toLowerCase();
  return findByName(client, { path: "/users", query: { email }, noun: "user", named });
}

/** A key by its id, or by the public part of an API key, which is what a leak or a log shows. */
export function findKey(client: AdminClient, named: string): Promise<ReplyRecord> {
  return readOne(client, "/keys", readKeyName(named));
}

/** One secret of a key: `sk-slc_` and its public id. What follows in a whole key is not repeated. */
export function readSecretName(named: string): string {
  const publicPart = publicPartOf(named);
  if (publicPart !== undefined) return publicPart;
  throw new UsageError("name a secret by its first characters (sk-slc_...)");
}

/** Cuts a whole API key to the part that may be sent around; nothing of it is repeated. */
export function readKeyName(named: string): string {
  const publicPart = publicPartOf(named);
  if (publicPart !== undefined) return publicPart;
  if (isId("key", named)) return named;
  throw new UsageError("name a key by its id (key_...) or its first characters (sk-slc_...)");
}

function publicPartOf(named: string): string | undefined {
  return /^sk-slc_[0-9A-Za-z]{8}(?=_|$)/.exec(named)?.[0];
}

export function pathOf(path: string, record: ReplyRecord): string {
  return `${path}/${encodeURIComponent(readText(record, "id"))}`;
}

function isId(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9A-Za-z]+$/.test(text.slice(prefix.length + 1));
}

async function readOne(client: AdminClient, path: string, id: string): Promise<ReplyRecord> {
  return readRecord(await client.request("GET", `${path}/${encodeURIComponent(id)}`));
}

interface NameSearch {
  readonly path: string;
  readonly query: AdminQuery;
  readonly noun: string;
  readonly named: string;
}

async function findByName(client: AdminClient, search: NameSearch): Promise<ReplyRecord> {
  const { path, query, noun, named } = search;
  const answer = await client.request("GET", path, { query: { ...query, limit: 20 } });
  const [found, ...others] = readRecords(answer, "data");
  if (found === undefined) {
    const list = commandLine(`${noun}s list`);
    throw new CommandError(`there is no ${noun} '${named}'; \`${list}\` shows all`);
  }
  if (others.length === 0) return found;
  const places = [found, ...others].map(
    (each) =>
      `  ${readText(each, "id")} of ${cellOf(each, "account_id")} in ${cellOf(each, "environment")}`,
  );
  throw new UsageError(
    `several ${noun}s are named '${named}': add --account or --environment, or take the id\n${places.join("\n")}`,
  );
}
