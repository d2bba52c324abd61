import { z } from "zod";
import { roles } from "../../domain/accounts/user.ts";
import {
  bootstrapSchema,
  credentialsSchema,
  passwordChangeSchema,
  sessionSchema,
  signedOutSchema,
  signInOptionsSchema,
} from "../contract/session.ts";
import type { OperationDescription } from "./operation-description.ts";

const shared = { resource: "Sign-in", isSignIn: true } as const;
const anybody = { ...shared, roles: [], scope: "read" } as const;
const signedIn = { ...shared, roles } as const;
const path = "/admin/v1/session";

/** The requests before and around a session, for the documents. `sign-in/routes.ts` serves them. */
export const signInDescriptions: readonly OperationDescription[] = [
  {
    ...anybody,
    id: "getSignInOptions",
    method: "GET",
    path: "/admin/v1/sign-in",
    summary: "Show how one can sign in",
    status: 200,
    answer: signInOptionsSchema,
  },
  {
    ...anybody,
    id: "bootstrap",
    method: "POST",
    path: "/admin/v1/bootstrap",
    summary: "Make the first operator",
    description: "With the one-time token that the first start prints. Signs in, too.",
    status: 201,
    body: bootstrapSchema,
    answer: sessionSchema,
  },
  {
    ...anybody,
    id: "signIn",
    method: "POST",
    path,
    summary: "Sign in with a password",
    description: "Sets the cookie of the session.",
    status: 200,
    body: credentialsSchema,
    answer: sessionSchema,
  },
  {
    ...signedIn,
    id: "getSession",
    method: "GET",
    path,
    summary: "Show who is signed in",
    scope: "read",
    status: 200,
    answer: sessionSchema,
  },
  {
    ...signedIn,
    id: "signOut",
    method: "DELETE",
    path,
    summary: "Sign out",
    scope: "write",
    status: 200,
    answer: signedOutSchema,
  },
  {
    ...signedIn,
    id: "changePassword",
    method: "POST",
    path: `${path}/password`,
    summary: "Change the own password",
    scope: "write",
    status: 200,
    body: passwordChangeSchema,
    answer: sessionSchema,
  },
  {
    ...anybody,
    id: "startSingleSignOn",
    method: "GET",
    path: "/admin/v1/sso/start",
    summary: "Go to the identity provider",
    status: 302,
    answer: undefined,
  },
  {
    ...anybody,
    id: "finishSingleSignOn",
    method: "GET",
    path: "/admin/v1/sso/callback",
    summary: "Come back from the identity provider",
    description: "Sets the cookie of the session and goes to `/`.",
    status: 302,
    query: z.object({ code: z.string().optional(), state: z.string().optional() }),
    answer: undefined,
  },
];
