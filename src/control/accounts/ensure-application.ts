import type { Application } from "../../domain/accounts/account.ts";
import { ordinaryPlans } from "../keys/key-rules.ts";
import { bySystem, changeAs, type Change } from "../operation/change.ts";
import type { AdminServices } from "../services.ts";
import { insertAccount } from "./accounts.ts";
import { insertApplication } from "./applications.ts";

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
    const facts = { accountId, environment, name };
    return items[0] ?? insertApplication(changing, facts, services);
  });
}

async function ensureAccount(
  changing: Change,
  name: string,
  services: EnsureServices,
): Promise<string> {
  const { items } = await changing.transaction.accounts.list({ name }, { limit: 1 });
  if (items[0] !== undefined) return items[0].id;
  const plans = ordinaryPlans(services.platform());
  return (await insertAccount(changing, { name, plans }, services)).id;
}
