import { accountOperations } from "./accounts.ts";
import { applicationOperations } from "./applications.ts";
import { auditOperations } from "./audit.ts";
import { erasureOperations } from "./erase-account.ts";
import { keyOperations } from "./keys.ts";
import { leakOperations } from "./leaks.ts";
import type { Operation } from "./operation.ts";
import { platformOperations } from "./platform.ts";
import { pepperOperations } from "./peppers.ts";
import { poolOperations } from "./pools.ts";
import { refusalOperations } from "./refusals.ts";
import type { AdminServices } from "./services.ts";
import { tokenOperations } from "./tokens.ts";
import { usageOperations } from "./usage.ts";
import { userOperations, type UserServices } from "./users.ts";

/** All that the control plane does for who is signed in, in the order of the reference page. */
export function adminOperations(
  services: AdminServices & Pick<UserServices, "passwords">,
): readonly Operation[] {
  return [
    ...accountOperations(services),
    ...erasureOperations(services),
    ...applicationOperations(services),
    ...keyOperations(services),
    ...leakOperations(services),
    ...pepperOperations(services),
    ...poolOperations(services),
    ...userOperations(services),
    ...tokenOperations(services),
    ...usageOperations(services),
    ...refusalOperations(services),
    ...auditOperations(services),
    ...platformOperations(services),
  ];
}
