import { accountOperations } from "./accounts/accounts.ts";
import { applicationOperations } from "./accounts/applications.ts";
import { auditOperations } from "./audit/audit.ts";
import { endUserOperations } from "./accounts/end-users.ts";
import { erasureOperations } from "./accounts/erase-account.ts";
import { keyOperations } from "./keys/keys.ts";
import { liveOperations } from "./live/live-operations.ts";
import { overviewOperation } from "./live/overview.ts";
import { leakOperations } from "./keys/leaks.ts";
import type { Operation } from "./operation/operation.ts";
import { platformOperations } from "./platform/platform.ts";
import { pepperOperations } from "./platform/peppers.ts";
import { poolOperations } from "./platform/pools.ts";
import { refusalOperations } from "./platform/refusals.ts";
import { budgetOperations } from "./budgets/budgets.ts";
import { choicesOperation } from "./platform/choices.ts";
import { priceOperations } from "./platform/prices.ts";
import { configurationOperation } from "./platform/configuration.ts";
import type { AdminServices } from "./services.ts";
import { processOperations } from "./platform/processes.ts";
import { sessionOperations, type SessionServices } from "./users/sessions.ts";
import { tokenOperations } from "./users/tokens.ts";
import { usageOperations } from "./usage/usage.ts";
import { userOperations, type UserServices } from "./users/users.ts";

/** All operations for signed-in principals, in the order of the reference page. */
export function adminOperations(
  services: AdminServices & UserServices & SessionServices,
): readonly Operation[] {
  const operations = [
    ...accountOperations(services),
    ...erasureOperations(services),
    ...endUserOperations(services),
    ...applicationOperations(services),
    ...keyOperations(services),
    ...leakOperations(services),
    ...budgetOperations(services),
    ...pepperOperations(services),
    ...poolOperations(services),
    ...userOperations(services),
    ...tokenOperations(services),
    ...sessionOperations(services),
    ...usageOperations(services),
    ...refusalOperations(services),
    ...auditOperations(services),
    ...platformOperations(services),
    ...priceOperations(services),
    ...processOperations(services),
    ...liveOperations(services),
    overviewOperation(services),
    configurationOperation(services),
  ];
  return [...operations, choicesOperation(operations)];
}
