import type { User } from "../../domain/accounts/user.ts";
import { userSchema, type UserView } from "../contract/access.ts";
import { viewAs } from "../values/api-form.ts";

/** A user as the API shows it: no hash, no identity. */
export function viewUser(user: User): UserView {
  return viewAs(userSchema, user, {
    has_password: user.passwordHash !== undefined,
    has_single_sign_on: user.identity !== undefined,
  });
}
