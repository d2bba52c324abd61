import { insertAccount } from "../../src/control/accounts/accounts.ts";
import { insertApplication } from "../../src/control/accounts/applications.ts";
import { changeOf } from "../../src/control/audit/audit-fields.ts";
import { insertKey, type IssuedKey, type NewSettings } from "../../src/control/keys/issue-key.ts";
import { bySystem, changeAs } from "../../src/control/operation/change.ts";
import type { AdminServices } from "../../src/control/services.ts";
import type { Application } from "../../src/store/entities.ts";

export interface ApplicationNames {
  readonly account: string;
  readonly application: string;
  readonly environment: string;
}

/** The application of these names, created with its account if missing. */
export function ensureApplication(
  services: Pick<AdminServices, "store" | "clock" | "random" | "platform">,
  { account: name, application, environment }: ApplicationNames,
): Promise<Application> {
  return changeAs(services, bySystem, async (changing) => {
    const { accounts, applications } = changing.transaction;
    const known = await accounts.list({ name }, { limit: 1 });
    // Plans open to all keys: with limits of their own and without provisioned throughput.
    const plans = [...services.platform().plans.values()]
      .filter(({ limits, provisioned }) => limits !== undefined && !provisioned)
      .map((plan) => plan.name);
    const { id: accountId } =
      known.items[0] ?? (await insertAccount(changing, { name, plans }, services));
    const facts = { accountId, environment, name: application };
    const { items } = await applications.list(facts, { limit: 1 });
    return items[0] ?? insertApplication(changing, facts, services);
  });
}

export type NewKey = { readonly applicationId: string } & NewSettings;

/** Issues a key to an existing application. */
export function issueKey(
  services: Pick<AdminServices, "store" | "peppers" | "clock" | "random">,
  { applicationId, ...settings }: NewKey,
): Promise<IssuedKey> {
  const actor = { kind: "system", id: undefined, name: "test" } as const;
  return changeAs(services, { actor }, async ({ transaction, now, audit }) => {
    const application = await transaction.applications.get(applicationId);
    if (application === undefined) throw new Error("there is no such application");
    const issued = await insertKey(transaction, { application, settings, now }, services);
    await audit(changeOf("key", "create", { after: issued.key }));
    return issued;
  });
}
