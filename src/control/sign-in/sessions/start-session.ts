import type { RandomBytes } from "../../../domain/keys/base62.ts";
import type { Peppers } from "../../../domain/keys/peppers.ts";
import type { Session, User } from "../../../domain/accounts/user.ts";
import { jsonReply, type Reply } from "../../../edge/replies/error-reply.ts";
import type { Change } from "../../operation/change.ts";
import type { SessionView } from "../../contract/session.ts";
import { timeText } from "../../values/api-form.ts";
import { viewUser } from "../keep-user.ts";
import { writeCookie } from "./cookies.ts";
import type { SignInServices } from "../services.ts";
import { csrfToken, newSession } from "./sessions.ts";

export interface StartedSession {
  readonly user: User;
  readonly session: Session;
  /** The cookie's value. */
  readonly secret: string;
}

export interface SessionBeginning {
  readonly user: User;
  readonly how: "password" | "bootstrap" | "single_sign_on";
  /** Id of the browser's previous session, which a sign-in ends. */
  readonly previous: string | undefined;
  readonly absoluteMs: number;
  readonly random: RandomBytes;
}

/** Starts a session in the transaction of the change. The user must be enabled. */
export async function startSession(
  change: Change,
  { user, how, previous, absoluteMs, random }: SessionBeginning,
): Promise<StartedSession> {
  const { transaction, now } = change;
  if (previous !== undefined) await transaction.sessions.delete(previous);
  await transaction.users.signedIn(user.id, now);
  const { secret, session } = newSession({ userId: user.id, now, absoluteMs, random });
  await transaction.sessions.insert(session);
  await change.audit({
    action: "session.start",
    subject: { type: "user", id: user.id },
    accountId: user.accountId,
    after: { how, expires_at: timeText(session.expiresAt) },
  });
  return { user: { ...user, lastSignInAt: now }, session, secret };
}

export type SessionReplyOptions = Pick<SignInServices, "publicUrl" | "peppers">;

export function viewSession(
  { user, session, secret }: StartedSession,
  { first }: Peppers,
): SessionView {
  return {
    user: viewUser(user),
    csrf_token: csrfToken(secret, first),
    expires_at: timeText(session.expiresAt),
  };
}

/** The answer to a sign-in: the session, and its cookie. */
export function startedReply(started: StartedSession, options: SessionReplyOptions): Reply {
  return jsonReply(viewSession(started, options.peppers), startedHeaders(started, options));
}

export function startedHeaders(
  { session, secret }: StartedSession,
  { publicUrl }: Pick<SessionReplyOptions, "publicUrl">,
): Readonly<Record<string, string>> {
  const maxAgeMs = session.expiresAt - session.createdAt;
  const cookie = writeCookie("session", { publicUrl: publicUrl(), value: secret, maxAgeMs });
  return { "set-cookie": cookie, "cache-control": "no-store" };
}
