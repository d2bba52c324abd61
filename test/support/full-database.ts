import { sql } from "kysely";
import { systemClock } from "../../src/domain/clock.ts";
import type { ControlTransaction } from "../../src/store/repositories/control-store.ts";
import type { SqlStores } from "../../src/store/repositories/open-stores.ts";
import { openStores } from "../../src/store/sqlite/open-stores.ts";
import { budgetOf } from "../contracts/budget-contract.ts";
import {
  accountOf,
  applicationOf,
  auditEntryOf,
  keyOf,
  secretOf,
  tokenOf,
  userOf,
} from "../contracts/control-fixtures.ts";
import { midnight, randomOf, randomRecords, recordOf } from "../contracts/usage-fixtures.ts";
import { testPeppers } from "./test-peppers.ts";

export const fullSize = { keys: 1_500, calls: 12_000, replies: 300 } as const;

/** Fills every table of a database with what gateways write over some weeks. */
export async function fillDatabase(path: string): Promise<void> {
  const stores = openStores(path, systemClock, { peppers: testPeppers() });
  await using _ = stores.connection;
  await stores.control.change(addEntities);
  await addUsage(stores);
  await addReplies(stores);
  await stores.connection.change(async (queries) => {
    for (let index = 0; index < 1_200; index += 1) {
      const id = `gone_${index}`;
      await sql`insert into erased_accounts values (${id}, ${index})`.execute(queries);
      await sql`insert into removed_keys (changed_epoch, key_id)
        values (${-1 - index}, ${id})`.execute(queries);
      await sql`insert into left_limit_scopes
        (key_id, limit_scope, account_id, application_id, revoked_at)
        values (${id}, ${id}, 'acct_0', 'app_0', ${index})`.execute(queries);
    }
  });
}

async function addEntities(to: ControlTransaction): Promise<void> {
  for (let index = 0; index < fullSize.keys; index += 1) {
    const accountId = `acct_${index % 40}`;
    if (index < 40) await to.accounts.insert(accountOf(accountId, { note: "Fußgänger \u{1f600}" }));
    const application = applicationOf(`app_${index % 80}`, { accountId });
    if (index < 80) await to.applications.insert(application);
    const key = keyOf(`key_${index}`, application);
    await to.keys.insert(key);
    const of = { id: `bgt_${index}`, accountId, createdAt: midnight, limitNano: 1_000_000 };
    const period = index % 2 === 0 ? "day" : "total";
    await to.budgets.insert(
      budgetOf(of.id, { ...of, period, ...(index > 5 && { keyId: key.id }) }),
    );
    await to.secrets.insert(secretOf(`of_${index}`, key.id));
    const user = `user_${index}`;
    await to.users.insert(userOf(user));
    await to.tokens.insert(tokenOf(`token_${index}`, user));
    const times = { address: undefined, createdAt: 1, lastSeenAt: 2, expiresAt: 3 };
    const link = { digest: `link_${index}`, purpose: "sign-in", expiresAt: 3 } as const;
    await to.links.put({ userId: user, ...link });
    await to.sessions.insert({ id: `session_${index}`, userId: user, ...times });
    await to.audit.append(auditEntryOf(index));
    const body = index % 3 === 0 ? undefined : new Uint8Array(index).fill(index);
    const reply = { requestDigest: "digest", status: 201, createdAt: 1, shownUntil: 2 };
    await to.replies.put({ id: `reply_${index}`, ...reply, body });
  }
}

async function addUsage({ usage }: SqlStores): Promise<void> {
  const records = randomRecords(randomOf(7), fullSize.calls, 12);
  for (let start = 0; start < records.length; start += 500) {
    await usage.insert(records.slice(start, start + 500));
  }
  await usage.insert([recordOf("req_odd", { code: "half \ud83d and \0", startedAt: midnight })]);
}

async function addReplies({ replies }: SqlStores): Promise<void> {
  for (let index = 0; index < fullSize.replies; index += 1) {
    const body = new Uint8Array(index * 50).fill(index);
    const accountId = `acct_${index % 7}`;
    const kept = { id: `kept_${index}`, accountId, requestDigest: "d", keptAt: index, body };
    await replies.keep({ reply: kept, holder: "req_1", limitBytes: 1e9 });
  }
}
