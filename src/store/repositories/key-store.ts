import { type RawBuilder, sql } from "kysely";
import type { Clock } from "../../domain/clock.ts";
import type { KeySecret } from "../../domain/keys/key.ts";
import type { EndedKey, KeyChange, KeyChanges, KeyStore, RenewedSecret } from "../store.ts";
import type { Budget } from "../../domain/money/budget.ts";
import { readPlainBudget } from "./budgets/budgets.ts";
import type { BudgetRow, Queries, Row, SqlConnection } from "./tables.ts";
import { bumpKeys, currentEpoch } from "./control/key-epochs.ts";
import { readKey, selectKeys } from "./control/keys.ts";
import { present, readLimits } from "./row.ts";

/** How long ended secrets are still loaded, so that their refusals can be explained. */
const endedSecretsMs = 3_600_000;
/** The same for keys that may not be used any more. */
const endedKeysMs = 86_400_000;

/** Keys in a database, for authentication. */
export class SqlKeyStore implements KeyStore {
  readonly #connection: SqlConnection;
  readonly #clock: Pick<Clock, "now">;

  constructor(connection: SqlConnection, clock: Pick<Clock, "now">) {
    this.#connection = connection;
    this.#clock = clock;
  }

  loadKeys(since: number, limit: number): Promise<KeyChanges> {
    const now = this.#clock.now();
    return this.#connection.read(async (queries) => {
      // An older database was restored, so everything is loaded again.
      const start = since > (await currentEpoch(queries)) ? 0 : since;
      const changed = await findChanges(queries, start, limit + 1);
      const page = changed.slice(0, limit);
      const epoch = page.at(-1)?.changedEpoch ?? start;
      const secrets = await findSecrets(queries, [start, epoch], now - endedSecretsMs);
      const budgets = await findBudgets(queries, [start, epoch]);
      const changes = page.map((row) => toChange(row, { secrets, budgets }, now));
      return { changes, epoch, hasMore: changed.length > limit };
    });
  }

  async recordLastUse(uses: ReadonlyMap<string, number>): Promise<void> {
    await this.#connection.change((queries) => noteLastUse(uses).execute(queries));
  }

  renewDigest({ publicId, stored, renewed }: RenewedSecret): Promise<void> {
    return this.#connection.change(async (queries) => {
      const row = await queries
        .updateTable("secrets")
        .set({ digest: renewed.digest, pepper: renewed.pepper })
        .where("publicId", "=", publicId)
        .where("digest", "=", stored)
        .returning("keyId")
        .executeTakeFirst();
      if (row !== undefined) await bumpKeys(queries, "id", row.keyId);
    });
  }
}

/**
 * One statement for many secrets. SQLite and PostgreSQL both read a JSON object; PostgreSQL casts its
 * values only as texts.
 */
function noteLastUse(uses: ReadonlyMap<string, number>): RawBuilder<unknown> {
  const at = sql`cast(cast(used.value as text) as bigint)`;
  return sql`
    update secrets set last_used_at = ${at}
    from json_each(${JSON.stringify(Object.fromEntries(uses))}) as used
    where secrets.public_id = used.key
      and (secrets.last_used_at is null or secrets.last_used_at < ${at})`;
}

type ChangeRow = Awaited<ReturnType<typeof findChangedKeys>>[number];

interface RemovalRow {
  readonly changedEpoch: number;
  readonly keyId: string;
}

/** Oldest change first. */
async function findChanges(
  queries: Queries,
  since: number,
  limit: number,
): Promise<readonly (ChangeRow | RemovalRow)[]> {
  const changed = await findChangedKeys(queries, since, limit);
  const removed = await queries
    .selectFrom("removedKeys")
    .select(["changedEpoch", "keyId"])
    .where("changedEpoch", ">", since)
    .orderBy("changedEpoch")
    .limit(limit)
    .execute();
  return [...changed, ...removed]
    .toSorted((one, other) => one.changedEpoch - other.changedEpoch)
    .slice(0, limit);
}

function findChangedKeys(queries: Queries, since: number, limit: number) {
  return selectKeys(queries)
    .crossJoin("accounts")
    .whereRef("accounts.id", "=", "applications.accountId")
    .select([
      "applications.disabledAt as applicationDisabledAt",
      "accounts.disabledAt as accountDisabledAt",
      "accounts.requestsPerMinute as accountRequestsPerMinute",
      "accounts.tokensPerMinute as accountTokensPerMinute",
    ])
    .where("keys.changedEpoch", ">", since)
    .orderBy("keys.changedEpoch")
    .limit(limit)
    .execute();
}

/** Selects all keys that changed within a range of epochs, in one statement. */
async function findSecrets(
  queries: Queries,
  [since, until]: readonly [since: number, until: number],
  endedAfter: number,
): Promise<ReadonlyMap<string, readonly KeySecret[]>> {
  if (since === until) return new Map();
  const { rows } = await sql<Row<KeySecret>>`
    select secrets.* from keys cross join secrets
    where secrets.key_id = keys.id and keys.changed_epoch > ${since} and keys.changed_epoch <= ${until}
      and (secrets.expires_at is null or secrets.expires_at > ${endedAfter})
    order by keys.changed_epoch, secrets.created_at desc, secrets.public_id desc`.execute(queries);
  return Map.groupBy(rows.map(present), ({ keyId }) => keyId);
}

const keyBudgets = sql`
  select keys.id as of_key, budgets.* from keys cross join budgets
  where budgets.account_id = keys.account_id and budgets.mode = 'refuse'`;

/** The budgets that calls of these keys are refused by; keys of one account share them. */
async function findBudgets(
  queries: Queries,
  [since, until]: readonly [since: number, until: number],
): Promise<ReadonlyMap<string, readonly Budget[]>> {
  if (since === until) return new Map();
  const isChanged = sql`keys.changed_epoch > ${since} and keys.changed_epoch <= ${until}`;
  const { rows } = await sql<BudgetRow & { ofKey: string }>`
    ${keyBudgets} and budgets.key_id = keys.id and ${isChanged}
    union all
    ${keyBudgets} and budgets.key_id is null
      and budgets.application_id = keys.application_id and ${isChanged}
    union all
    ${keyBudgets} and budgets.key_id is null and budgets.application_id is null and ${isChanged}
    order by created_at, id`.execute(queries);
  const known = new Map<string, Budget>();
  const found = new Map<string, Budget[]>();
  for (const { ofKey, ...row } of rows) {
    const budget = readPlainBudget(row);
    const shared = known.get(budget.id) ?? budget;
    known.set(budget.id, shared);
    found.set(ofKey, [...(found.get(ofKey) ?? []), shared]);
  }
  return found;
}

interface OfKeys {
  readonly secrets: ReadonlyMap<string, readonly KeySecret[]>;
  readonly budgets: ReadonlyMap<string, readonly Budget[]>;
}

function toChange(
  change: ChangeRow | RemovalRow,
  { secrets: secretsByKey, budgets }: OfKeys,
  now: number,
): KeyChange {
  if ("keyId" in change) return { keyId: change.keyId, live: undefined };
  const key = readKey(change);
  const end = findEnd(change);
  const secrets = secretsByKey.get(key.id) ?? [];
  if (end === undefined) {
    const accountLimits = readLimits({
      requestsPerMinute: change.accountRequestsPerMinute,
      tokensPerMinute: change.accountTokensPerMinute,
    });
    return { keyId: key.id, live: { key, accountLimits, budgets: budgets.get(key.id), secrets } };
  }
  const isRecent = end.at > now - endedKeysMs;
  return {
    keyId: key.id,
    live: undefined,
    ended: { ...end, key, secrets: isRecent ? secrets : [] },
  };
}

/** Why a key may not be used; the key's own reasons come first. */
function findEnd(row: ChangeRow): Pick<EndedKey, "reason" | "at"> | undefined {
  if (row.revokedAt !== null) return { reason: "key_revoked", at: row.revokedAt };
  if (row.disabledAt !== null) return { reason: "key_disabled", at: row.disabledAt };
  const { applicationDisabledAt: ofApplication, accountDisabledAt: ofAccount } = row;
  if (ofApplication !== null) return { reason: "application_disabled", at: ofApplication };
  if (ofAccount !== null) return { reason: "account_disabled", at: ofAccount };
  return undefined;
}
