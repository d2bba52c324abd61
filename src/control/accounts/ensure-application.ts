import type { Application } from "../../domain/accounts/account.ts";
import type { AuditEntry } from "../../domain/audit/audit.ts";
import { randomBase62 } from "../../domain/keys/base62.ts";
import type { ControlTransaction } from "../../store/control-store.ts";
import { accountFields, applicationFields } from "../audit/audit-fields.ts";
import { ordinaryPlans } from "../keys/key-rules.ts";
import type { AdminServices } from "../services.ts";

export interface ApplicationNames {
  readonly account: string;
  readonly application: string;
  readonly environment: string;
}

type EnsureServices = Pick<AdminServices, "store" | "clock" | "random" | "platform">;

/** The application of these names, made with its account where it is not there yet. */
export async function ensureApplication(
  services: EnsureServices,
  names: ApplicationNames,
): Promise<Application> {
  return services.store.change(async (transaction) => {
    const accountId = await ensureAccount(transaction, names.account, services);
    const { environment, application: name } = names;
    const { items } = await transaction.applications.list(
      { accountId, environment, name },
      { limit: 1 },
    );
    if (items[0] !== undefined) return items[0];
    const now = services.clock.now();
    const application: Application = {
      id: `app_${randomBase62(16, services.random)}`,
      accountId,
      environment,
      name,
      note: "",
      createdAt: now,
      disabledAt: undefined,
      disabledBy: undefined,
      revision: 1,
    };
    await transaction.applications.insert(application);
    await transaction.audit.append({
      ...bySystem(now),
      action: "application.create",
      subject: { type: "application", id: application.id },
      accountId,
      after: applicationFields(application),
    });
    return application;
  });
}

async function ensureAccount(
  transaction: ControlTransaction,
  name: string,
  services: EnsureServices,
): Promise<string> {
  const { items } = await transaction.accounts.list({ name }, { limit: 1 });
  if (items[0] !== undefined) return items[0].id;
  const now = services.clock.now();
  const account = {
    id: `acct_${randomBase62(16, services.random)}`,
    name,
    note: "",
    plans: ordinaryPlans(services.platform()),
    maxKeys: 100,
    limits: undefined,
    createdAt: now,
    disabledAt: undefined,
    revision: 1,
  };
  await transaction.accounts.insert(account);
  await transaction.audit.append({
    ...bySystem(now),
    action: "account.create",
    subject: { type: "account", id: account.id },
    accountId: account.id,
    after: accountFields(account),
  });
  return account.id;
}

/** Made by Sluice itself, such as at the demo's first start. */
function bySystem(
  at: number,
): Pick<AuditEntry, "at" | "actor" | "address" | "requestId" | "before"> {
  return {
    at,
    actor: { kind: "system", id: undefined, name: "system" },
    address: undefined,
    requestId: undefined,
    before: undefined,
  };
}
