import { sql } from "kysely";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import type { Queries } from "../../repositories/tables.ts";
import type { GroupIds } from "../../repositories/usage/batch-sums.ts";
import { type Detail, details } from "../../repositories/usage/usage-steps.ts";
import { rowsOf, type SetRow } from "./row-set.ts";

const dimensions = [
  "detail",
  "environment",
  "account_id",
  "application_id",
  "key_id",
  "model",
  "target",
  "status",
  "capacity_class",
] as const;

type Dimensions = Readonly<Record<(typeof dimensions)[number], string | number>>;
type CallGroups = Readonly<Record<Detail, Dimensions>>;

/** The groups of a batch. */
export interface BatchGroups {
  /** Of a call of the batch. */
  of(record: UsageRecord): GroupIds;
}

/**
 * Finds or creates the groups of calls. Nothing is kept between batches, since other gateways may
 * remove groups. Only one transaction at a time may do this.
 */
export async function findGroups(
  queries: Queries,
  records: readonly UsageRecord[],
): Promise<BatchGroups> {
  const ids = new GroupTable(queries);
  // Many calls share their groups.
  const shared = new Map(records.map((record) => [nameOfCall(record), record]));
  const groups = new Map([...shared].map(([name, record]) => [name, groupsOf(record)]));
  const all = [...groups.values()];
  await ids.find(all.flatMap(({ key, model, route }) => [key, model, route]));
  // The groups of all dimensions refer to the others.
  const wholes = all.map(({ full, key, model, route }) => {
    const ofWhole = {
      key_group_id: ids.idOf(key),
      model_group_id: ids.idOf(model),
      route_group_id: ids.idOf(route),
    };
    return [nameOf(full), ofWhole] as const;
  });
  await ids.find(
    all.map(({ full }) => full),
    new Map(wholes),
  );
  const found = new Map([...groups].map(([name, ofCall]) => [name, ids.idsOf(ofCall)]));
  return {
    of(record) {
      const ofCall = found.get(nameOfCall(record));
      if (ofCall === undefined) throw new Error("the call is not of this batch");
      return ofCall;
    },
  };
}

class GroupTable {
  readonly #queries: Queries;
  readonly #ids = new Map<string, number>();

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  idOf(group: Dimensions): number {
    const id = this.#ids.get(nameOf(group));
    if (id === undefined) throw new Error("a group of usage has no id");
    return id;
  }

  idsOf({ full, key, model, route }: CallGroups): GroupIds {
    return {
      full: this.idOf(full),
      key: this.idOf(key),
      model: this.idOf(model),
      route: this.idOf(route),
    };
  }

  /** `wholes` has further columns of new groups, by name. */
  async find(groups: readonly Dimensions[], wholes?: ReadonlyMap<string, SetRow>): Promise<void> {
    const wanted = new Map(groups.map((group) => [nameOf(group), group]));
    await this.#select([...wanted.values()]);
    const missing = [...wanted].filter(([name]) => !this.#ids.has(name));
    if (missing.length === 0) return;
    await this.#insert(missing.map(([name, group]) => ({ ...group, ...wholes?.get(name) })));
    await this.#select(missing.map(([, group]) => group));
  }

  async #select(groups: readonly Dimensions[]): Promise<void> {
    const columns = sql.raw(dimensions.join(", "));
    // In the order of the rows, which is the only column that names each of them.
    const { rows } = await sql<{ id: number; place: number }>`
      select stored.id, wanted.place from (
        select ${columns}, row_number() over () - 1 as place from ${rowsOf("usage_groups", groups)}
      ) as wanted join usage_groups as stored using (${columns})`.execute(this.#queries);
    for (const { id, place } of rows) {
      const group = groups[place];
      if (group !== undefined) this.#ids.set(nameOf(group), id);
    }
  }

  async #insert(rows: readonly SetRow[]): Promise<void> {
    const columns = sql.raw(
      [...dimensions, "key_group_id", "model_group_id", "route_group_id"].join(", "),
    );
    await sql`
      insert into usage_groups (${columns})
      select ${columns} from ${rowsOf("usage_groups", rows)}`.execute(this.#queries);
  }
}

/** Dimensions that a detail leaves out, and the target of calls that tried none, are empty. */
function groupsOf(record: UsageRecord): CallGroups {
  const { environment, accountId, applicationId, keyId, model, target, status } = record;
  const none = { application_id: "", key_id: "", model: "", target: "" };
  const owner = { environment, account_id: accountId, ...none, status: 0, capacity_class: "" };
  const key = { application_id: applicationId, key_id: keyId };
  const route = { target: target ?? "", status, capacity_class: record.capacityClass };
  return {
    full: { ...owner, detail: details.full, ...key, model, ...route },
    key: { ...owner, detail: details.key, ...key },
    model: { ...owner, detail: details.model, model },
    route: { ...owner, detail: details.route, ...route },
  };
}

function nameOf(group: Dimensions): string {
  return JSON.stringify(dimensions.map((dimension) => group[dimension]));
}

/** Equal for calls of the same groups. No name contains a line break. */
function nameOfCall(record: UsageRecord): string {
  const { keyId, model, status, target = "", capacityClass } = record;
  const owner = `${record.applicationId}\n${record.accountId}\n${record.environment}`;
  return `${keyId}\n${model}\n${status}\n${target}\n${capacityClass}\n${owner}`;
}
