import { jsonReply } from "../../edge/replies/reply.ts";
import type { AdminCall, AnonymousAdminCall, Route } from "../../edge/dispatch/route.ts";
import type { SignInOptionsView } from "../contract/session.ts";
import { fromStorageError } from "../operation/storage-error.ts";
import { bootstrapRoute } from "./bootstrap/bootstrap-route.ts";
import { hasOperator } from "./bootstrap/bootstrap.ts";
import type { SignInServices } from "./services.ts";
import { sessionRoutes } from "./sessions/session-routes.ts";
import { SignInLimits } from "./guard/sign-in-limits.ts";
import { ssoRoutes } from "./sso/sso-routes.ts";

/** All requests of signing in and out. */
export function signInRoutes(services: SignInServices): readonly Route[] {
  const limits = new SignInLimits(services.settings, services.clock);
  const routes = [
    signInOptions(services),
    ...sessionRoutes(services, limits),
    bootstrapRoute(services, limits),
    ...ssoRoutes(services, limits),
  ];
  return routes.map(withStorageErrors);
}

function signInOptions({ store, settings }: SignInServices): Route {
  return {
    method: "GET",
    path: "/admin/v1/sign-in",
    access: "anonymous",
    async handle() {
      const answer: SignInOptionsView = {
        password: true,
        single_sign_on: settings.sso !== undefined,
        needs_bootstrap: !(await store.read(hasOperator)),
      };
      return jsonReply(answer, { "cache-control": "no-store" });
    },
  };
}

function withStorageErrors(route: Route): Route {
  switch (route.access) {
    case "anonymous":
      return { ...route, handle: (call: AnonymousAdminCall) => mapped(() => route.handle(call)) };
    case "principal":
      return { ...route, handle: (call: AdminCall) => mapped(() => route.handle(call)) };
    case "key":
    case "public":
      return route;
  }
}

async function mapped<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw fromStorageError(error);
  }
}
