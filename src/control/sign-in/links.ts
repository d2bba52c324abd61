import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { isLoopback } from "../../domain/network.ts";
import type { AnonymousAdminCall } from "../../edge/dispatch/route.ts";
import type { Reply } from "../../edge/replies/error-reply.ts";
import type { LinkPurpose, SignInLink, User } from "../../store/entities.ts";
import { about } from "../audit/audit-fields.ts";
import { linkExchangeSchema } from "../contract/session.ts";
import { change, type Change } from "../operation/change.ts";
import { invalidField } from "../operation/refusals.ts";
import { timeText } from "../values/api-form.ts";
import { requireGoodPassword } from "./guard/password-rules.ts";
import type { SignInLimits } from "./guard/sign-in-limits.ts";
import { updateUser } from "./keep-user.ts";
import { callOf, readFields, refuseSignIn, type SignInServices } from "./services.ts";
import { newSecret, sha256 } from "./sessions/sessions.ts";
import { startedReply, startSession } from "./sessions/start-session.ts";

interface NewLink {
  readonly user: User;
  readonly purpose: LinkPurpose;
  readonly lifetimeMs: number;
}

/**
 * Makes a link that signs an enabled user in once, with its entry in the audit; an earlier one of
 * the user ends. The token is in the fragment, which browsers send to nobody.
 */
export async function insertLink(
  { transaction, now, audit }: Change,
  { user, purpose, lifetimeMs }: NewLink,
  { random, publicUrl }: Pick<SignInServices, "random" | "publicUrl">,
): Promise<{ readonly url: string; readonly expiresAt: number }> {
  const token = newSecret(random);
  const expiresAt = now + lifetimeMs;
  await transaction.links.put({ userId: user.id, digest: sha256(token), purpose, expiresAt });
  const after = { purpose, link_expires_at: timeText(expiresAt) };
  await audit({ ...about("user", "link", user), after });
  return { url: `${publicUrl()}/#${purpose}=${token}`, expiresAt };
}

/** Signs in with the token of a link. Of requests that use it at once, one succeeds. */
export async function useLink(
  services: SignInServices,
  limits: SignInLimits,
  call: AnonymousAdminCall,
): Promise<Reply> {
  limits.countAddress(call.address);
  const { token, password } = await readFields(call, linkExchangeSchema);
  const { store, clock } = services;
  const refuse = (reason: string) => refuseSignIn(services, call, { how: "link", reason });
  const digest = sha256(token);
  const { link, user: found } = await store.read(async (view) => {
    const link = await view.links.get(digest);
    return { link, user: link && (await view.users.get(link.userId)) };
  });
  if (link === undefined || found === undefined) throw refuse("the link is unknown or used");
  if (clock.now() >= link.expiresAt) throw refuse("the link has expired");
  if (link.purpose === "sign-in" && !isLoopback(call.address)) {
    throw refuse("the link works only on the gateway's machine");
  }
  const passwordHash = await hashPassword(services, { link, password, email: found.email });
  const started = await change(services, callOf(call, found), async (made) => {
    // The user may have changed while the password was hashed, and another request used the link.
    const user = await made.transaction.users.get(found.id);
    const isTaken = await made.transaction.links.take(digest);
    if (!isTaken || user === undefined || user.disabledAt !== undefined) {
      throw refuse("the link has just been used, or the user disabled");
    }
    const signedIn =
      passwordHash === undefined ? user : await updateUser(made, user, { ...user, passwordHash });
    return startSession(made, { user: signedIn, how: "link" }, services);
  });
  if (passwordHash !== undefined) limits.forget(call.address, found.email);
  return startedReply(started, services);
}

interface SentPassword {
  readonly link: SignInLink;
  readonly password: string | undefined;
  readonly email: string;
}

/** Undefined for a link that signs in as it is. Throws 400, and the link stays usable. */
async function hashPassword(
  { passwords }: Pick<SignInServices, "passwords">,
  { link, password, email }: SentPassword,
): Promise<string | undefined> {
  if (link.purpose === "sign-in") {
    if (password === undefined) return undefined;
    throw invalidField("password", "leave it out: this link signs in without a new password");
  }
  if (password === undefined) {
    const message = "Missing required parameter: 'password'. Choose a new one.";
    throw new GatewayError("missing_required_parameter", { message, param: "password" });
  }
  requireGoodPassword(password, email, "password");
  return passwords.hash(password);
}
