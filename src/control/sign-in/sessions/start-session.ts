import type { Peppers } from "../../../domain/keys/peppers.ts";
import { jsonReply, type Reply } from "../../../edge/replies/error-reply.ts";
import type { Change } from "../../operation/change.ts";
import type { SessionView } from "../../contract/session.ts";
import { timeText } from "../../values/api-form.ts";
import { viewUser } from "../keep-user.ts";
import { writeCookie } from "./cookies.ts";
import type { SignInRefusal, SignInServices } from "../services.ts";
import { csrfToken, newSecret, sha256 } from "./sessions.ts";
import type { Session, User } from "../../../store/entities.ts";

export interface StartedSession {
  readonly user: User;
  readonly session: Session;
  /** The cookie's value. */
  readonly secret: string;
}

/** Starts a session in the transaction of the change. The user must be enabled. */
export async function startSession(
  { transaction, now, address, audit }: Change,
  { user, how }: Pick<StartedSession, "user"> & Pick<SignInRefusal, "how">,
  { settings, random }: Pick<SignInServices, "settings" | "random">,
): Promise<StartedSession> {
  const secret = newSecret(random);
  const session: Session = {
    id: sha256(secret),
    userId: user.id,
    address,
    createdAt: now,
    lastSeenAt: now,
    expiresAt: now + settings.sessionAbsoluteMs,
  };
  await transaction.users.signedIn(user.id, now);
  await transaction.sessions.insert(session);
  await audit({
    action: "session.start",
    subject: { type: "user", id: user.id },
    accountId: user.accountId,
    after: { how, expires_at: timeText(session.expiresAt) },
  });
  return { user: { ...user, lastSignInAt: now }, session, secret };
}

export function viewSession(
  { user, session, secret }: StartedSession,
  { first }: Peppers,
): SessionView {
  return {
    id: session.id,
    user: viewUser(user),
    csrf_token: csrfToken(secret, first),
    expires_at: timeText(session.expiresAt),
  };
}

/** The answer to a sign-in: the session, and its cookie. */
export function startedReply(started: StartedSession, services: SignInServices): Reply {
  return jsonReply(viewSession(started, services.peppers), startedHeaders(started, services));
}

export function startedHeaders(
  { session, secret }: StartedSession,
  { publicUrl }: SignInServices,
): Readonly<Record<string, string>> {
  const maxAgeMs = session.expiresAt - session.createdAt;
  const cookie = writeCookie("session", { publicUrl: publicUrl(), value: secret, maxAgeMs });
  return { "set-cookie": cookie, "cache-control": "no-store" };
}
