import { Pseudonyms } from "../../domain/keys/pseudonyms.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import {
  erasedEndUserSchema,
  type EndUserView,
  endUserErasureSchema,
  endUserNamesSchema,
  endUsersSchema,
} from "../contract/end-users.ts";
import { change } from "../operation/change.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import type { AdminServices } from "../services.ts";
import { viewTotal } from "../usage/usage.ts";
import { requireAccount } from "./accounts.ts";

/** What is known of the people for whom calls were made, to who has their names. */
export function endUserOperations(services: AdminServices): readonly Operation[] {
  return [findEndUsers(services), eraseEndUser(services)];
}

function findEndUsers(services: AdminServices): Operation {
  const { store, reports, costs, clock } = services;
  return defineOperation({
    id: "findEndUsers",
    method: "POST",
    path: "/admin/v1/accounts/{id}/end-users",
    resource: "Usage",
    summary: "Show end users by their names",
    description:
      "Their pseudonyms, and what they have used in the calls that are kept. Stores nothing.",
    ...permissions.manage,
    body: endUserNamesSchema,
    answer: endUsersSchema,
    async run({ call, parameters, body }) {
      const { id: accountId } = await store.read((view) => {
        return requireAccount(view, parameters["id"] ?? "", call.principal);
      });
      const stored = new Map(
        body.names.flatMap((name) => {
          const all = storedAs(accountId, name, services);
          return all.map((endUser, place) => [endUser, { name, isCurrent: place === 0 }] as const);
        }),
      );
      const range = { since: await costs.callsSince(), until: clock.now() };
      const filter = { ...range, accountId, endUsers: [...stored.keys()] };
      const totals = await reports.totals({ filter, by: ["end_user"], limit: stored.size });
      const used = new Map(totals.map((total) => [total.group["end_user"], viewTotal(total)]));
      const data = [...stored].flatMap(([endUser, { name, isCurrent }]): readonly EndUserView[] => {
        const total = used.get(endUser);
        // The pseudonym of now is told also of who has made no calls.
        if (total === undefined && !isCurrent) return [];
        const {
          calls = 0,
          input_tokens = 0,
          output_tokens = 0,
          cost_usd = usdOfNano(0),
        } = total ?? {};
        return [{ name, end_user: endUser, calls, input_tokens, output_tokens, cost_usd }];
      });
      return { data };
    },
  });
}

function eraseEndUser(services: AdminServices): Operation {
  return defineOperation({
    id: "eraseEndUser",
    method: "POST",
    path: "/admin/v1/accounts/{id}/erase-end-user",
    resource: "Usage",
    summary: "Erase an end user",
    description:
      "Takes it out of all calls that arrived so far, also of those that are not stored yet. The calls " +
      "stay, and so do sums. If it fails in between, repeat it. The audit keeps a record without the name.",
    ...permissions.manage,
    body: endUserErasureSchema,
    answer: erasedEndUserSchema,
    async run({ call, parameters, body: { name } }) {
      const before = services.clock.now();
      const entry = { subject: { type: "usage", id: call.id }, accountId: parameters["id"] };
      // Noted first: an interrupted erasure has taken it out of calls, too.
      await change(services, { ...call, replies: undefined }, async ({ transaction, audit }) => {
        await requireAccount(transaction, parameters["id"] ?? "", call.principal);
        await audit({ ...entry, action: "usage.erase_end_user_begin" });
      });
      const { id = "" } = parameters;
      const erased = { accountId: id, endUsers: storedAs(id, name, services), before };
      const calls = await services.usage.eraseEndUsers(erased);
      return change(services, call, async ({ audit }) => {
        await audit({ ...entry, action: "usage.erase_end_user", after: { calls } });
        return { erased: true as const, calls };
      });
    },
  });
}

/** How calls may have a name: under each pepper, newest first, and as it is. */
function storedAs(
  accountId: string,
  name: string,
  { peppers }: Pick<AdminServices, "peppers">,
): readonly string[] {
  const ofPeppers = peppers.all.map((first) => {
    return new Pseudonyms({ first }).ofEndUser(accountId, name).pseudonym;
  });
  return [...ofPeppers, name.trim()];
}
