import type { SsoSettings } from "../../../config/config.ts";
import { GatewayError } from "../../../domain/errors/gateway-error.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { Reply } from "../../../edge/replies/error-reply.ts";
import type { AnonymousAdminCall, Route } from "../../../edge/dispatch/route.ts";
import { change } from "../../operation/change.ts";
import { notFound } from "../../operation/scope.ts";
import { readCookie, writeCookie } from "../sessions/cookies.ts";
import { anonymousRoute } from "../descriptions.ts";
import { refuseSignIn, callOf, type SignInServices } from "../services.ts";
import type { SignInLimits } from "../guard/sign-in-limits.ts";
import { type SignOnClaims, signOnLifetimeMs, SingleSignOn } from "./single-sign-on.ts";
import { keepSignOnUser, signOnName } from "./sso-user.ts";
import { startedHeaders, startSession } from "../sessions/start-session.ts";

const signOnCallbackPath = "/admin/v1/sso/callback";

/** `/admin/v1/sso`: sign in at an identity provider. 404 when none is configured. */
export function ssoRoutes(services: SignInServices, limits: SignInLimits): readonly Route[] {
  const { settings, publicUrl, clock, random } = services;
  const singleSignOn = settings.sso && {
    settings: settings.sso,
    provider: new SingleSignOn({
      settings: settings.sso,
      redirectUrl: () => publicUrl() + signOnCallbackPath,
      clock,
      random,
    }),
  };
  return [
    anonymousRoute("startSingleSignOn", async () => {
      if (singleSignOn === undefined) throw notFound("single sign-on configured");
      const { url, binding: value } = await singleSignOn.provider.begin();
      const binding = { publicUrl: publicUrl(), value, maxAgeMs: signOnLifetimeMs };
      const cookie = writeCookie("sign_on", binding);
      return redirect(url, { "set-cookie": cookie, "cache-control": "no-store" });
    }),
    anonymousRoute("finishSingleSignOn", async (call) => {
      if (singleSignOn === undefined) throw notFound("single sign-on configured");
      limits.countAddress(call.address);
      return finish(services, call, singleSignOn);
    }),
  ];
}

async function finish(
  services: SignInServices,
  call: AnonymousAdminCall,
  { settings, provider }: { settings: SsoSettings; provider: SingleSignOn },
): Promise<Reply> {
  const { publicUrl, random } = services;
  const how = "single_sign_on";
  const binding = readCookie(call.request, "sign_on", publicUrl());
  const signOn = await provider
    .finish(`?${call.query.toString()}`, binding)
    .catch((error: unknown) => {
      throw noted(services, call, error);
    });
  if (signOn === undefined) {
    throw refuseSignIn(services, call, { how, reason: "this sign-on is unknown" });
  }
  try {
    const visit = { id: call.id, signal: call.signal, address: call.address };
    const user = await change(services, { ...visit, principal: visitor(signOn) }, (made) =>
      keepSignOnUser(made, signOn, { settings, random }),
    );
    const started = await change(services, callOf(call, user), async (made) => {
      const current = await made.transaction.users.get(user.id);
      if (current === undefined || current.disabledAt !== undefined) throw notFound("user");
      return startSession(made, { user: current, how }, services);
    });
    return redirect("/", startedHeaders(started, services));
  } catch (error) {
    throw noted(services, call, error);
  }
}

function noted(services: SignInServices, call: AnonymousAdminCall, error: unknown): unknown {
  if (error instanceof GatewayError) {
    services.onSignInRefused({
      requestId: call.id,
      address: call.address,
      how: "single_sign_on",
      reason: error.message,
    });
  }
  return error;
}

/** The audit's actor until the user is found. */
function visitor(signOn: SignOnClaims): Principal {
  return {
    kind: "session",
    userId: undefined,
    name: signOnName(signOn),
    role: "auditor",
    accountId: undefined,
    scopes: [],
  };
}

function redirect(location: string, headers: Readonly<Record<string, string>>): Reply {
  return { status: 302, headers: { ...headers, location }, body: null };
}
