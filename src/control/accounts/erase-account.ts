import type { Account } from "../../store/entities.ts";
import { requireAccount } from "./accounts.ts";
import { about, changeOf } from "../audit/audit-fields.ts";
import { change, type Change } from "../operation/change.ts";
import { erasedSchema, erasureSchema } from "../contract/accounts.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { invalidField } from "../operation/refusals.ts";
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
        "Removes users, keys, applications, budgets and usage in steps: keys stop first, the account " +
        "goes last. If it fails in between, repeat it. The audit keeps a record.",
      ...permissions.operate,
      body: erasureSchema,
      answer: erasedSchema,
      async run({ call, parameters, body: { confirm } }) {
        // The answer is stored with the last step, so an interrupted request can be repeated.
        const step: Step = (work) => change(services, { ...call, replies: undefined }, work);
        const account = await step(async (changing) => {
          const id = parameters["id"] ?? "";
          const before = await requireAccount(changing.transaction, id, call.principal);
          if (confirm !== before.name) throw invalidField("confirm", "repeat the account's name");
          return stopAccount(changing, before);
        });
        const repeat = async (remove: () => Promise<number>): Promise<number> => {
          for (let sum = 0; ;) {
            call.signal.throwIfAborted();
            const removed = await remove();
            if (removed === 0) return sum;
            sum += removed;
          }
        };
        const { id } = account;
        const budgets = await repeat(() => step((changing) => removeSome(changing, id, "budgets")));
        const keys = await repeat(() => step((changing) => removeSome(changing, id, "keys")));
        const applications = await repeat(() =>
          step((changing) => removeSome(changing, id, "applications")),
        );
        const users = await repeat(() => step((changing) => removeSome(changing, id, "users")));
        // Rows of calls that have just ended may not be stored yet.
        await services.store.change(({ accounts }) =>
          accounts.markErased(id, services.clock.now()),
        );
        const usageRows = await repeat(() => services.usage.erase(id, batchRows));
        const removed = { users, keys, applications, budgets, usage_rows: usageRows };
        return change(services, call, async (changing) => {
          await changing.transaction.accounts.delete(id);
          await changing.audit({ ...about("account", "erase", account), after: removed });
          return { id, deleted: true, removed };
        });
      },
    }),
  ];
}

type Step = <Result>(work: (changing: Change) => Promise<Result>) => Promise<Result>;

/** Refuses its keys everywhere, before they are removed. */
async function stopAccount(changing: Change, before: Account): Promise<Account> {
  const isStopped = before.disabledAt !== undefined;
  const wanted = { ...before, disabledAt: changing.now };
  const after = isStopped ? before : await changing.transaction.accounts.update(wanted);
  if (!isStopped) changing.touchesKeys();
  await changing.audit(changeOf("account", "erase_begin", { before, after }));
  return after;
}

async function removeSome(
  { transaction, audit }: Change,
  accountId: string,
  kind: "budgets" | "keys" | "applications" | "users",
): Promise<number> {
  const { [kind]: table } = transaction;
  const { items } = await table.list({ accountId }, { limit: batchRows });
  const ids = items.map(({ id }) => id);
  if (ids.length === 0) return 0;
  for (const id of ids) await table.delete(id);
  await audit({
    ...about("account", `erase_${kind}` as const, { id: accountId }),
    before: { ids },
  });
  return ids.length;
}
