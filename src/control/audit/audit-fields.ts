import type {
  Account,
  Application,
  ManagementToken,
  Session,
  StoredBudget,
  User,
} from "../../store/entities.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import type { AuditFields } from "../../store/audit.ts";
import type { Key } from "../../domain/keys/key.ts";
import type { AuditedChange } from "../operation/change.ts";
import { pickFields } from "../values/api-form.ts";

export interface Entities {
  readonly account: Account;
  readonly application: Application;
  readonly key: Key;
  readonly budget: StoredBudget;
  readonly user: User;
  readonly token: ManagementToken;
  readonly session: Session;
}
export type Kind = keyof Entities;

/**
 * The audited fields of each entity. The list is explicit so that a secret, a digest or a password
 * hash cannot get into the audit by being added to an entity.
 */
const kept: { readonly [Each in Kind]: (entity: Entities[Each]) => AuditFields } = {
  account: (account) => pick("name note plans max_keys limits time_zone disabled_at", account),
  application: (application) => pick("environment name note disabled_at disabled_by", application),
  key: (key) => ({
    ...pick("application_id application environment name plan limits provisioned_units", key),
    ...pick("provisioned_pool allowed_models allowed_networks note", key),
    ...pick("expires_at disabled_at disabled_by revoked_at", key),
  }),
  budget: (budget) => ({
    ...pick("account_id application_id key_id model period time_zone mode", budget),
    limit_usd: usdOfNano(budget.limitNano),
    ...pick("alerts note set_by", budget),
  }),
  user: (user) => ({
    ...pick("email name role account_id disabled_at", user),
    has_password: user.passwordHash !== undefined,
    has_single_sign_on: user.identity !== undefined,
  }),
  token: (token) => ({
    ...pick("user_id name public_id scopes expires_at revoked_at", token),
    made_with: token.parentId ?? null,
  }),
  session: (session) => pick("address created_at last_seen_at expires_at", session),
};

function pick(names: string, entity: object): AuditFields {
  return pickFields(names.split(" "), entity);
}

interface States<Entity> {
  readonly before?: Entity;
  readonly after?: Entity;
}

export function changeOf<Each extends Kind, Verb extends string>(
  kind: Each,
  verb: Verb,
  { before, after }: States<Entities[Each]>,
): AuditedChange<`${Each}.${Verb}`> {
  return {
    ...about(kind, verb, before ?? after ?? { id: "" }),
    before: before && kept[kind](before),
    after: after && kept[kind](after),
  };
}

/** Names the entity of an audit entry. A token has no account: the caller adds its user's. */
export function about<Each extends Kind, Verb extends string>(
  kind: Each,
  verb: Verb,
  entity: { readonly id: string; readonly accountId?: string | undefined },
): Pick<AuditedChange<`${Each}.${Verb}`>, "action" | "subject" | "accountId"> {
  const accountId = kind === "account" ? entity.id : entity.accountId;
  return { action: `${kind}.${verb}` as const, subject: { type: kind, id: entity.id }, accountId };
}
