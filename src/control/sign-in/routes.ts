import { jsonReply } from "../../edge/replies/error-reply.ts";
import type { Route } from "../../edge/dispatch/route.ts";
import type { SignInOptionsView } from "../contract/session.ts";
import { sessionRoutes } from "./sessions/session-routes.ts";
import { hasOperator } from "./bootstrap/bootstrap.ts";
import { anonymousRoute } from "./descriptions.ts";
import type { SignInServices } from "./services.ts";
import { SignInLimits } from "./guard/sign-in-limits.ts";
import { ssoRoutes } from "./sso/sso-routes.ts";

/** All routes for signing in and out. */
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
    ...sessionRoutes(services, limits),
    ...ssoRoutes(services, limits),
  ];
}
