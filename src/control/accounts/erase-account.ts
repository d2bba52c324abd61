import type { Account } from "../../domain/accounts/account.ts";
import { requireAccount } from "./accounts.ts";
import { about, changeOf } from "../audit/audit-fields.ts";
import { change } from "../operation/change.ts";
import { erasedSchema, erasureSchema } from "../contract/accounts.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { invalidField } from "../operation/refusals.ts";
import { type Operation, type OperationCall, permissions } from "../operation/operation.ts";
import type { AdminServices } from "../services.ts";

/** Rows per transaction, few enough that other transactions do not wait long. */
const batchRows = 500;

/** Removes an account with all its data, usage included. */
export function erasureOperations(services: AdminServices): readonly Operation[] {
  return [
    defineOperation({
      id: "eraseAccount",
      method: "POST",
      path: "/admin/v1/accounts/{id}/erase",
      resource: "Accounts",
      summary: "Erase an account and everything it owns",
      description:
        "Removes users, keys, applications and usage in steps: keys stop first, the account " +
        "goes last. If it fails in between, repeat it. The audit keeps a record.",
      ...permissions.operate,
      body: erasureSchema,
      answer: erasedSchema,
      async run({ call, parameters, body }) {
        const account = await stopAccount(services, {
          call,
          id: parameters["id"] ?? "",
          confirm: body.confirm,
        });
        const erasure = { services, call, accountId: account.id };
        const keys = await removeAll(erasure, "keys");
        const applications = await removeAll(erasure, "applications");
        const users = await removeAll(erasure, "users");
        await refuseLateUsage(erasure);
        const usageRows = await eraseUsage(erasure);
        const removed = { users, keys, applications, usage_rows: usageRows };
        return change(services, call, async (changing) => {
          await changing.transaction.accounts.delete(account.id);
          await changing.audit({ ...about("account", "erase", account), after: removed });
          return { id: account.id, deleted: true, removed };
        });
      },
    }),
  ];
}

interface ErasureWish {
  readonly call: OperationCall;
  readonly id: string;
  readonly confirm: string;
}

/** Refuses its keys everywhere, before they are removed. */
async function stopAccount(
  services: AdminServices,
  { call, id, confirm }: ErasureWish,
): Promise<Account> {
  return change(services, stepOf(call), async (changing) => {
    const before = await requireAccount(changing.transaction, id, call.principal);
    if (confirm !== before.name) throw invalidField("confirm", "repeat the account's name");
    const wanted = { ...before, disabledAt: before.disabledAt ?? changing.now };
    const isStopped = before.disabledAt !== undefined;
    const after = isStopped ? before : await changing.transaction.accounts.update(wanted);
    if (!isStopped) changing.touchesKeys();
    await changing.audit(changeOf("account", "erase_begin", { before, after }));
    return after;
  });
}

/** The answer is stored with the last step, so an interrupted request can be repeated. */
function stepOf(call: OperationCall): OperationCall {
  return { ...call, replies: undefined };
}

interface Erasure {
  readonly services: AdminServices;
  readonly call: OperationCall;
  readonly accountId: string;
}

async function removeAll(
  { services, call, accountId }: Erasure,
  kind: "keys" | "applications" | "users",
): Promise<number> {
  let count = 0;
  for (;;) {
    call.signal.throwIfAborted();
    const removed = await change(services, stepOf(call), async ({ transaction, audit }) => {
      const { [kind]: table } = transaction;
      const { items } = await table.list({ accountId }, { limit: batchRows });
      const ids = items.map(({ id }) => id);
      if (ids.length === 0) return 0;
      for (const id of ids) await table.delete(id);
      await audit({ ...about("account", `erase_${kind}`, { id: accountId }), before: { ids } });
      return ids.length;
    });
    count += removed;
    if (removed < batchRows) return count;
  }
}

/** Rows of calls that have just ended may not be stored yet. */
async function refuseLateUsage({ services, accountId }: Erasure): Promise<void> {
  const now = services.clock.now();
  await services.store.change(({ accounts }) => accounts.markErased(accountId, now));
}

async function eraseUsage({ services, call, accountId }: Erasure): Promise<number> {
  let count = 0;
  for (;;) {
    call.signal.throwIfAborted();
    const removed = await services.usage.erase(accountId, batchRows);
    count += removed;
    if (removed === 0) return count;
  }
}
