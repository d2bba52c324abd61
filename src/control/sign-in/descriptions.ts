import { z } from "zod";
import { roles } from "../../domain/principal.ts";
import {
  bootstrapSchema,
  credentialsSchema,
  linkExchangeSchema,
  passwordChangeSchema,
  sessionSchema,
  signedOutSchema,
  signInOptionsSchema,
} from "../contract/session.ts";
import type { AdminCall, AnonymousAdminCall, Route } from "../../edge/dispatch/route.ts";
import type { Reply } from "../../edge/replies/error-reply.ts";
import type { OperationDescription } from "../operation/operation.ts";
import { fromStorageError } from "../operation/refusals.ts";

const shared = { resource: "Sign-in", isSignIn: true } as const;
const anybody = { ...shared, roles: [], scope: "read" } as const;
const signedIn = { ...shared, roles } as const;
const path = "/admin/v1/session";

/** The requests for signing in and out. Their routes and documentation are made from these. */
const requests = {
  getSignInOptions: {
    ...anybody,
    method: "GET",
    path: "/admin/v1/sign-in",
    summary: "Show the ways to sign in",
    status: 200,
    answer: signInOptionsSchema,
  },
  bootstrap: {
    ...anybody,
    method: "POST",
    path: "/admin/v1/bootstrap",
    summary: "Create the first operator",
    description: "Uses the one-time token that the first start prints. Also signs in.",
    status: 201,
    body: bootstrapSchema,
    answer: sessionSchema,
  },
  signIn: {
    ...anybody,
    method: "POST",
    path,
    summary: "Sign in with a password",
    description: "Sets the session cookie.",
    status: 200,
    body: credentialsSchema,
    answer: sessionSchema,
  },
  useLink: {
    ...anybody,
    method: "POST",
    path: `${path}/link`,
    summary: "Sign in with a link",
    description: "Uses the token of a link, which works once. Sets the session cookie.",
    status: 200,
    body: linkExchangeSchema,
    answer: sessionSchema,
  },
  getSession: {
    ...signedIn,
    method: "GET",
    path,
    summary: "Show the signed-in user",
    scope: "read",
    status: 200,
    answer: sessionSchema,
  },
  signOut: {
    ...signedIn,
    method: "DELETE",
    path,
    summary: "Sign out",
    scope: "write",
    status: 200,
    answer: signedOutSchema,
  },
  changePassword: {
    ...signedIn,
    method: "POST",
    path: `${path}/password`,
    summary: "Change your own password",
    scope: "write",
    status: 200,
    body: passwordChangeSchema,
    answer: sessionSchema,
  },
  startSingleSignOn: {
    ...anybody,
    method: "GET",
    path: "/admin/v1/sso/start",
    summary: "Redirect to the identity provider",
    status: 302,
    answer: undefined,
  },
  finishSingleSignOn: {
    ...anybody,
    method: "GET",
    path: "/admin/v1/sso/callback",
    summary: "Return from the identity provider",
    description: "Sets the session cookie and redirects to `/`.",
    status: 302,
    query: z.object({ code: z.string().optional(), state: z.string().optional() }),
    answer: undefined,
  },
} as const satisfies Record<string, Omit<OperationDescription, "id">>;

type SignInRequest = keyof typeof requests;

export const signInDescriptions: readonly OperationDescription[] = Object.entries(requests).map(
  ([id, request]) => ({ id, ...request }),
);

export function anonymousRoute(
  id: SignInRequest,
  handle: (call: AnonymousAdminCall) => Promise<Reply>,
): Route {
  const { method, path } = requests[id];
  return { method, path, access: "anonymous", handle: (call) => orStorageError(handle(call)) };
}

export function signedInRoute(
  id: SignInRequest,
  handle: (call: AdminCall) => Promise<Reply>,
): Route {
  const { method, path, scope } = requests[id];
  const served = (call: AdminCall): Promise<Reply> => orStorageError(handle(call));
  return { method, path, access: "principal", roles, scope, handle: served };
}

async function orStorageError(reply: Promise<Reply>): Promise<Reply> {
  try {
    return await reply;
  } catch (error) {
    throw fromStorageError(error);
  }
}
