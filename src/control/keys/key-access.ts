import type { Account, Application } from "../../domain/accounts/account.ts";
import type { Key } from "../../domain/keys/key.ts";
import type { Principal } from "../../domain/accounts/user.ts";
import type { ControlView } from "../../store/control-store.ts";
import { notFound, requireVisible } from "../operation/scope.ts";

/** A key by its id, or by the beginning of one of its API keys, if the principal may see it. */
export async function requireKey(
  view: ControlView,
  named: string,
  principal: Principal,
): Promise<Key> {
  const [, publicId] = /^sk-slc_([0-9A-Za-z]{8})$/.exec(named) ?? [];
  const id = publicId === undefined ? named : (await view.secrets.get(publicId))?.keyId;
  const key = id === undefined ? undefined : await view.keys.get(id);
  return requireVisible(key, principal, "key");
}

export interface KeyOwners {
  readonly application: Application;
  readonly account: Account;
}

/** The application, if the principal may see it, and its account. */
export async function requireOwners(
  view: ControlView,
  applicationId: string,
  principal: Principal,
): Promise<KeyOwners> {
  const application = requireVisible(
    await view.applications.get(applicationId),
    principal,
    "application",
  );
  const account = await view.accounts.get(application.accountId);
  if (account === undefined) throw notFound("account");
  return { application, account };
}
