import type { AdminClient, AdminQuery } from "../client/admin-client.ts";
import { CommandError, UsageError } from "../command.ts";
import {
  cellOf,
  readRecord,
  readRecords,
  readText,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import { commandLine } from "../program.ts";

/** A type of object that the command line accepts by id or by name. */
export interface Entity {
  readonly noun: string;
  readonly prefix: string;
  /** What it is, behind its id in messages. */
  readonly about: (record: ReplyRecord) => string;
  /** The query parameter of its list that finds it by name, if any. */
  readonly parameter?: string;
  /** Turns typed text that is not a name into a name to look up. Throws `UsageError`. */
  readonly read?: (named: string) => string;
}

const named =
  (field: string) =>
  (record: ReplyRecord): string =>
    `'${cellOf(record, field)}'`;

export const entities = {
  account: { noun: "account", prefix: "acct", about: named("name"), parameter: "name" },
  application: { noun: "application", prefix: "app", about: named("name"), parameter: "name" },
  user: { noun: "user", prefix: "user", about: named("email"), parameter: "email" },
  key: {
    noun: "key",
    prefix: "key",
    about: (key) => `of application ${named("application")(key)}`,
    read: readKeyName,
  },
  budget: { noun: "budget", prefix: "bgt", about: budgetText },
  token: { noun: "token", prefix: "tok", about: named("name"), read: readTokenName },
} as const satisfies Readonly<Record<string, Entity>>;

export interface Owners {
  readonly account?: string | undefined;
  readonly environment?: string | undefined;
}

export interface Wanted {
  readonly entity: Entity;
  readonly named: string;
  readonly owners: Owners;
}

export async function findEntity(client: AdminClient, wanted: Wanted): Promise<ReplyRecord> {
  const { entity, named } = wanted;
  const asked = entity.read?.(named) ?? named;
  // The admin API shows tokens in lists only.
  if (entity === entities.token) return { id: asked };
  if (entity.parameter !== undefined && !isId(entity.prefix, asked)) {
    return findByName(client, wanted);
  }
  return readRecord(await client.request("GET", `/${entity.noun}s/${encodeURIComponent(asked)}`));
}

/** Finds only the id; a typed id is not looked up. */
export async function findId(client: AdminClient, wanted: Wanted): Promise<string> {
  const { entity, named } = wanted;
  const asked = entity.read?.(named) ?? named;
  if (isId(entity.prefix, asked)) return asked;
  return readText(await findEntity(client, wanted), "id");
}

/** `Account acct_... 'shop'`. */
export function titleOf({ noun, about }: Entity, record: ReplyRecord): string {
  return `${noun.charAt(0).toUpperCase()}${noun.slice(1)} ${readText(record, "id")} ${about(record)}`;
}

/** `of 5 USD a month for each end user of application 'search'`. */
function budgetText(budget: ReplyRecord): string {
  const { period, limit_usd: limit } = budget;
  const often = period === "total" ? "in total" : `a ${String(period)}`;
  const owners = ["key_id", "application", "account"];
  const of = owners.find((field) => typeof budget[field] === "string") ?? "account";
  const each = budget["each_end_user"] === true ? "each end user of " : "";
  return `of ${Number(limit)} USD ${often} for ${each}${of.replace("_id", "")} ${named(of)(budget)}`;
}

/** Reads `sk-slc_` and the public id of a secret; the rest of a complete key is dropped. */
export function readSecretName(named: string): string {
  const publicPart = publicPartOf(named);
  if (publicPart !== undefined) return publicPart;
  throw new UsageError("give the first characters of a secret (sk-slc_...)");
}

/** Cuts a complete API key down to its public part; messages never repeat it. */
function readKeyName(named: string): string {
  const publicPart = publicPartOf(named);
  if (publicPart !== undefined) return publicPart;
  if (isId("key", named)) return named;
  throw new UsageError("give a key's id (key_...) or first characters (sk-slc_...)");
}

/** Refuses text that is not an id, because it may be a complete token. */
function readTokenName(named: string): string {
  if (isId("tok", named)) return named;
  throw new UsageError("give a token's id (tok_...)");
}

function publicPartOf(named: string): string | undefined {
  return /^sk-slc_[0-9A-Za-z]{8}(?=_|$)/.exec(named)?.[0];
}

function isId(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9A-Za-z]+$/.test(text.slice(prefix.length + 1));
}

async function findByName(client: AdminClient, wanted: Wanted): Promise<ReplyRecord> {
  const { noun, parameter = "name" } = wanted.entity;
  const { named } = wanted;
  const owners = noun === "application" ? await idsOf(client, wanted.owners) : {};
  const query = { ...owners, [parameter]: named, limit: 20 };
  const answer = await client.request("GET", `/${noun}s`, { query });
  const [found, ...others] = readRecords(answer, "data");
  if (found === undefined) {
    throw new CommandError(`no ${noun} '${named}'; \`${commandLine(`${noun}s list`)}\` shows all`);
  }
  if (others.length === 0) return found;
  const all = [found, ...others].map(
    (each) =>
      `  ${readText(each, "id")} of ${cellOf(each, "account_id")} in ${cellOf(each, "environment")}`,
  );
  throw new UsageError(
    `several ${noun}s are named '${named}': add --account or --environment, or use the ` +
      `id\n${all.join("\n")}`,
  );
}

async function idsOf(client: AdminClient, { account, environment }: Owners): Promise<AdminQuery> {
  if (account === undefined) return { environment };
  const wanted = { entity: entities.account, named: account, owners: {} };
  return { environment, account_id: await findId(client, wanted) };
}
