import { AdminRefusal, type AdminClient, type AdminQuery } from "../client/admin-client.ts";
import {
  cellOf,
  readPart,
  readRecord,
  readRecords,
  type ReplyRecord,
} from "../output/reply-fields.ts";
import type { Column } from "../output/show-reply.ts";

/** The fields that a report groups by, and its groups. */
export interface Groups {
  readonly by: readonly string[];
  readonly records: readonly ReplyRecord[];
  /** Filter of the report, which also restricts the lookup of names. */
  readonly filter: AdminQuery;
}

/** Accounts, applications and keys by their ids. */
export type GroupNames = ReadonlyMap<string, ReplyRecord>;

const pageLimit = 500;
/** Limits the lookup; names on later pages are left out. */
const mostPages = 4;

/** Looks up the names of groups; ids that are not found have no name. */
export async function findGroupNames(client: AdminClient, groups: Groups): Promise<GroupNames> {
  const { by, filter } = groups;
  const { account_id, application_id, environment } = filter;
  const queries = new Map<string, AdminQuery>([
    ["account", {}],
    ["application", { account_id, environment }],
    ["key", { account_id, application_id, environment }],
  ]);
  const names = new Map<string, ReplyRecord>();
  for (const dimension of by) {
    const query = queries.get(dimension);
    const ids = idsOf(groups.records, dimension);
    if (query === undefined || ids.size === 0) continue;
    for await (const record of readSome(client, `/${dimension}s`, query)) {
      const id = String(record["id"]);
      if (ids.delete(id)) names.set(id, record);
      if (ids.size === 0) break;
    }
  }
  return names;
}

/** Columns of ids with their names. */
export function groupColumns(by: readonly string[], names: GroupNames): readonly Column[] {
  return by.flatMap((dimension) => {
    const of = `group.${dimension}`;
    const field = (title: string, name: string): Column => ({
      title,
      of: (record) => cellOf(names.get(String(cellOf(record, of))) ?? {}, name),
    });
    const id = { title: dimension.toUpperCase(), of };
    if (dimension === "account" || dimension === "application") return [id, field("NAME", "name")];
    if (dimension !== "key") return [id];
    const application = field("APPLICATION", "application");
    return [id, ...(by.includes("application") ? [] : [application]), field("PLAN", "plan")];
  });
}

function idsOf(records: readonly ReplyRecord[], dimension: string): Set<string> {
  const ids = records.map((record) => readPart(record, "group")?.[dimension]);
  return new Set(ids.filter((id) => typeof id === "string"));
}

async function* readSome(
  client: AdminClient,
  path: string,
  query: AdminQuery,
): AsyncGenerator<ReplyRecord> {
  let cursor: string | undefined;
  for (let page = 0; page < mostPages; page += 1) {
    const answer = await readPage(client, path, { ...query, cursor, limit: pageLimit });
    if (answer === undefined) return;
    yield* readRecords(answer, "data");
    const next = answer["next_cursor"];
    if (typeof next !== "string") return;
    cursor = next;
  }
}

/** Undefined if the user may not read the list, because the report works without names. */
async function readPage(
  client: AdminClient,
  path: string,
  query: AdminQuery,
): Promise<ReplyRecord | undefined> {
  try {
    return readRecord(await client.request("GET", path, { query }));
  } catch (error) {
    if (error instanceof AdminRefusal) return undefined;
    throw error;
  }
}
