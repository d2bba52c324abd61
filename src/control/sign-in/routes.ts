import { jsonReply, type Reply } from "../../edge/replies/error-reply.ts";
import type { Route, AdminCall, AnonymousAdminCall } from "../../edge/dispatch/route.ts";
import {
  type SignInOptionsView,
  credentialsSchema,
  passwordChangeSchema,
  type SessionView,
  bootstrapSchema,
} from "../contract/session.ts";
import { hasOperator } from "./bootstrap/bootstrap.ts";
import { anonymousRoute, signedInRoute } from "./descriptions.ts";
import { type SignInServices, readFields, refuseSignIn, callOf } from "./services.ts";
import { SignInLimits } from "./guard/sign-in-limits.ts";
import { ssoRoutes } from "./sso/sso-routes.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";
import { change } from "../operation/change.ts";
import { viewUser, updateUser, insertUser, newUser } from "./keep-user.ts";
import { useLink } from "./links.ts";
import { wrongState } from "../operation/refusals.ts";
import { readCookie, writeCookie } from "./sessions/cookies.ts";
import { requireGoodPassword } from "./guard/password-rules.ts";
import { findSession, sessionId } from "./sessions/sessions.ts";
import {
  startedReply,
  type StartedSession,
  startSession,
  viewSession,
} from "./sessions/start-session.ts";

export function signInRoutes(services: SignInServices): readonly Route[] {
  const { store, settings, clock } = services;
  const limits = new SignInLimits(settings.signInsPerMinute, clock);
  return [
    anonymousRoute("getSignInOptions", async () => {
      const answer: SignInOptionsView = {
        password: true,
        single_sign_on: settings.sso !== undefined,
        needs_bootstrap: !(await store.read(hasOperator)),
      };
      return jsonReply(answer, { "cache-control": "no-store" });
    }),
    anonymousRoute("bootstrap", (call) => makeOperator(services, limits, call)),
    anonymousRoute("signIn", (call) => signIn(services, limits, call)),
    anonymousRoute("useLink", (call) => useLink(services, limits, call)),
    signedInRoute("getSession", (call) => show(services, call)),
    signedInRoute("signOut", (call) => end(services, call)),
    signedInRoute("changePassword", (call) => changePassword(services, limits, call)),
    ...ssoRoutes(services, limits),
  ];
}

async function signIn(
  services: SignInServices,
  limits: SignInLimits,
  call: AnonymousAdminCall,
): Promise<Reply> {
  const { email, password } = await readFields(call, credentialsSchema);
  const { store, passwords } = services;
  const refuse = (reason: string) => refuseSignIn(services, call, { how: "password", reason });
  const { items } = await store.read((view) => view.users.list({ email }, { limit: 1 }));
  const [found] = items;
  const takeBack = limits.takePassword(call.address, email);
  const isRight = await passwords.verify(password, found?.passwordHash);
  if (!isRight || found === undefined) throw refuse("wrong email or password");
  takeBack();
  const started = await change(services, callOf(call, found), async (made) => {
    // The user may have changed while the password was hashed.
    const user = await made.transaction.users.get(found.id);
    const isSame = user?.passwordHash === found.passwordHash;
    if (user === undefined || !isSame || user.disabledAt !== undefined) {
      throw refuse("the user is disabled or has changed");
    }
    return startSession(made, { user, how: "password" }, services);
  });
  return startedReply(started, services);
}

async function show(services: SignInServices, call: AdminCall): Promise<Reply> {
  const { principal } = call;
  const headers = { "cache-control": "no-store" };
  if (principal.kind === "session") {
    const { session, user, secret } = await currentSession(services, call);
    return jsonReply(viewSession({ session, user, secret }, services.peppers), headers);
  }
  const { userId } = principal;
  const user =
    userId === undefined ? undefined : await services.store.read((view) => view.users.get(userId));
  const answer: SessionView = {
    id: null,
    user: user === undefined ? null : viewUser(user),
    csrf_token: null,
    expires_at: null,
  };
  return jsonReply(answer, headers);
}

async function end(services: SignInServices, call: AdminCall): Promise<Reply> {
  const { session } = await currentSession(services, call);
  await change(services, { ...call, isSignIn: true }, async (made) => {
    await made.transaction.sessions.delete(session.id);
    await made.audit({
      action: "session.end",
      subject: { type: "user", id: session.userId },
      accountId: call.principal.accountId,
    });
  });
  const ended = { publicUrl: services.publicUrl(), value: "", maxAgeMs: 0 };
  const headers = { "set-cookie": writeCookie("session", ended), "cache-control": "no-store" };
  return jsonReply({ signed_out: true }, headers);
}

async function changePassword(
  services: SignInServices,
  limits: SignInLimits,
  call: AdminCall,
): Promise<Reply> {
  const { user: found } = await currentSession(services, call);
  const body = await readFields(call, passwordChangeSchema);
  if (found.passwordHash === undefined) {
    throw wrongState("You sign in with single sign-on, so there is no password to change.");
  }
  const { passwords } = services;
  const takeBack = limits.takePassword(call.address, found.email);
  const isRight = await passwords.verify(body.current_password, found.passwordHash);
  if (!isRight) {
    throw new GatewayError("wrong_credentials", {
      message: "The current password is wrong.",
      param: "current_password",
    });
  }
  takeBack();
  requireGoodPassword(body.new_password, found.email, "new_password");
  const passwordHash = await passwords.hash(body.new_password);
  const started = await change(services, { ...call, isSignIn: true }, async (made) => {
    const user = await made.transaction.users.get(found.id);
    if (user === undefined || user.passwordHash !== found.passwordHash) {
      throw wrongState("Your password was changed elsewhere. Sign in again.");
    }
    const changed = await updateUser(made, user, { ...user, passwordHash });
    return startSession(made, { user: changed, how: "password" }, services);
  });
  return startedReply(started, services);
}

/** The session of a request that passed the gate. Throws 409 for tokens. */
async function currentSession(services: SignInServices, call: AdminCall): Promise<StartedSession> {
  const { store, publicUrl } = services;
  const secret = readCookie(call.request, "session", publicUrl());
  const id = call.principal.kind === "session" ? sessionId(secret) : undefined;
  if (secret === undefined || id === undefined) {
    throw wrongState("This needs a session, but you sent a token. Sign in with a password.");
  }
  const { session, user } = await store.read((view) => findSession(view, id));
  if (session === undefined || user === undefined) {
    throw new GatewayError("not_signed_in", { message: "The session has just ended." });
  }
  return { session, user, secret };
}

/** Creates the first operator, with the one-time token, and signs them in. */
async function makeOperator(
  services: SignInServices,
  limits: SignInLimits,
  call: AnonymousAdminCall,
): Promise<Reply> {
  limits.countAddress(call.address);
  const { token, email, name, password } = await readFields(call, bootstrapSchema);
  const { bootstrap, passwords, random, clock } = services;
  const refuse = (reason: string) => refuseSignIn(services, call, { how: "bootstrap", reason });
  if (!bootstrap.isRight(token)) throw refuse("the token is wrong, used or expired");
  requireGoodPassword(password, email, "password");
  const passwordHash = await passwords.hash(password);
  const facts = { email, name: name ?? "", role: "operator", passwordHash } as const;
  const user = newUser(facts, clock.now(), random);
  const started = await change(services, callOf(call, user), async (made) => {
    // Of two concurrent requests, only one may create the first operator.
    if (await hasOperator(made.transaction)) throw refuse("an operator already exists");
    await insertUser(made, user);
    return startSession(made, { user, how: "bootstrap" }, services);
  });
  bootstrap.end();
  return { ...startedReply(started, services), status: 201 };
}
