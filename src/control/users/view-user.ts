import type { User } from "../../domain/accounts/user.ts";
import type { UserView } from "../contract/access.ts";
import { timeText } from "../values/time-text.ts";

/** A user as the API shows it: no hash, no identity. */
export function viewUser(user: User): UserView {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    role: user.role,
    account_id: user.accountId ?? null,
    has_password: user.passwordHash !== undefined,
    has_single_sign_on: user.identity !== undefined,
    created_at: timeText(user.createdAt),
    disabled_at: timeText(user.disabledAt),
    last_sign_in_at: timeText(user.lastSignInAt),
    revision: user.revision,
  };
}
