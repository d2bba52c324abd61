import type { Account, Application } from "../../domain/accounts/account.ts";
import { randomBase62 } from "../../domain/keys/base62.ts";
import { changeOf } from "../audit/audit-fields.ts";
import { ordinaryPlans } from "../keys/key-rules.ts";
import { bySystem, changeAs, type Change } from "../operation/change.ts";
import type { AdminServices } from "../services.ts";
import { newAccount } from "./accounts.ts";
import { newApplication } from "./applications.ts";

export interface ApplicationNames {
  readonly account: string;
  readonly application: string;
  readonly environment: string;
}

type EnsureServices = Pick<AdminServices, "store" | "clock" | "random" | "platform">;

/** The application of these names, created with its account if missing. */
export function ensureApplication(
  services: EnsureServices,
  { account, application: name, environment }: ApplicationNames,
): Promise<Application> {
  return changeAs(services, bySystem, async (changing) => {
    const { applications } = changing.transaction;
    const accountId = await ensureAccount(changing, account, services);
    const { items } = await applications.list({ accountId, environment, name }, { limit: 1 });
    if (items[0] !== undefined) return items[0];
    const application: Application = {
      ...newApplication,
      id: `app_${randomBase62(16, services.random)}`,
      accountId,
      environment,
      name,
      createdAt: changing.now,
    };
    await applications.insert(application);
    await changing.audit(changeOf("application", "create", { after: application }));
    return application;
  });
}

async function ensureAccount(
  { transaction, now, audit }: Change,
  name: string,
  services: EnsureServices,
): Promise<string> {
  const { items } = await transaction.accounts.list({ name }, { limit: 1 });
  if (items[0] !== undefined) return items[0].id;
  const id = `acct_${randomBase62(16, services.random)}`;
  const plans = ordinaryPlans(services.platform());
  const account: Account = { ...newAccount, id, name, plans, createdAt: now };
  await transaction.accounts.insert(account);
  await audit(changeOf("account", "create", { after: account }));
  return id;
}
