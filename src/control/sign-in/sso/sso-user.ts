import type { SsoSettings } from "../../../config/config.ts";
import type { RandomBytes } from "../../../domain/keys/base62.ts";
import type { GatewayError } from "../../../domain/errors/gateway-error.ts";
import { roles, type Role } from "../../../domain/principal.ts";
import type { ControlView } from "../../../store/repositories/control-store.ts";
import { notPermitted } from "../../operation/refusals.ts";
import type { Change } from "../../operation/change.ts";
import { emailSchema } from "../../contract/access.ts";
import { insertUser, newUser, updateUser } from "../keep-user.ts";
import type { SignOnClaims } from "./single-sign-on.ts";
import type { User } from "../../../store/entities.ts";

/**
 * The user of the claims: found by issuer and subject, else bound by a verified email address, else
 * new. Role and account follow the claims each time. Throws 403 and 409.
 */
export async function keepSignOnUser(
  change: Change,
  signOn: SignOnClaims,
  { settings, random }: { settings: SsoSettings; random: RandomBytes },
): Promise<User> {
  const role = readRole(signOn.claims, settings);
  const accountId = await readAccount(change.transaction, { signOn, settings, role });
  const before = await findUser(change.transaction, signOn);
  if (before === undefined) {
    const facts = { ...describeUser(signOn), role, accountId };
    const user = newUser(facts, change.now, random);
    await insertUser(change, user);
    return user;
  }
  if (before.disabledAt !== undefined) throw askOperator("This user is disabled.");
  const { issuer, subject } = signOn;
  const isSame = before.role === role && before.accountId === accountId;
  if (isSame && before.identity !== undefined) return before;
  const identity = { issuer, subject };
  return updateUser(change, before, { ...before, role, accountId, identity });
}

/** Email address of the claims, for the audit; the subject when there is none. */
export function signOnName({ claims, subject }: SignOnClaims): string {
  return readEmail(claims) ?? subject.slice(0, 254);
}

async function findUser(view: ControlView, signOn: SignOnClaims): Promise<User | undefined> {
  const { issuer, subject, claims } = signOn;
  const known = await view.users.findByIdentity(issuer, subject);
  if (known !== undefined) return known;
  const email = readEmail(claims);
  if (email === undefined) return undefined;
  const { items } = await view.users.list({ email }, { limit: 1 });
  const [user] = items;
  if (user === undefined) return undefined;
  if (user.identity !== undefined) {
    throw askOperator("The email address belongs to a user of another identity.");
  }
  // Otherwise anybody could become that user by entering the address in a profile.
  if (claims.email_verified !== true) {
    throw askOperator(
      "A user with this email address exists, and the provider has not verified it.",
    );
  }
  return user;
}

/** Reads a new user from the claims. Throws 403 without a trustworthy email address. */
function describeUser({ issuer, subject, claims }: SignOnClaims) {
  const email = readEmail(claims);
  if (email === undefined) {
    throw askOperator("The identity provider did not send an email address.");
  }
  if (claims.email_verified === false) throw askOperator("The email address is not verified.");
  const name = typeof claims.name === "string" ? claims.name.slice(0, 100) : "";
  return { email, name, identity: { issuer, subject } };
}

function readRole(claims: SignOnClaims["claims"], settings: SsoSettings): Role {
  const byValue = new Map(Object.entries(settings.roles));
  const held = new Set(readTexts(claims[settings.roleClaim]).map((value) => byValue.get(value)));
  const role = roles.find((candidate) => held.has(candidate));
  if (role !== undefined) return role;
  throw askOperator(`Nothing in the claim '${settings.roleClaim}' gives you a role.`);
}

/**
 * An auditor of one account must not become one of all accounts because its account or the claim is
 * missing or malformed: only the configuration allows that.
 */
async function readAccount(
  view: ControlView,
  { signOn, settings, role }: { signOn: SignOnClaims; settings: SsoSettings; role: Role },
): Promise<string | undefined> {
  if (role === "operator") return undefined;
  const claim = signOn.claims[settings.accountClaim];
  if (claim === undefined && role === "auditor" && settings.auditorsSeeAll) return undefined;
  const values: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  const [name] = values;
  if (typeof name !== "string" || values.length > 1) {
    throw askOperator(`The claim '${settings.accountClaim}' does not name exactly one account.`);
  }
  const byId = await view.accounts.get(name);
  if (byId !== undefined) return byId.id;
  const { items } = await view.accounts.list({ name }, { limit: 1 });
  if (items[0] !== undefined) return items[0].id;
  throw askOperator(`The account in the claim '${settings.accountClaim}' does not exist.`);
}

function readEmail(claims: SignOnClaims["claims"]): string | undefined {
  return emailSchema.safeParse(claims.email).data;
}

function readTexts(value: unknown): readonly string[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.filter((text) => typeof text === "string");
}

function askOperator(what: string): GatewayError {
  return notPermitted(`${what} Ask an operator.`);
}
