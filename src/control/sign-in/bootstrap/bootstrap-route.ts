import type { Reply } from "../../../edge/replies/error-reply.ts";
import type { AnonymousAdminCall, Route } from "../../../edge/dispatch/route.ts";
import { change } from "../../operation/change.ts";
import { bootstrapSchema } from "../../contract/session.ts";
import { hasOperator } from "./bootstrap.ts";
import { anonymousRoute } from "../descriptions.ts";
import { insertUser, newUser } from "../keep-user.ts";
import { requireGoodPassword } from "../guard/password-rules.ts";
import { readFields } from "../read-fields.ts";
import { refuseSignIn } from "../refuse-sign-in.ts";
import { callOf, type SignInServices } from "../services.ts";
import { beginning } from "../sessions/session-routes.ts";
import type { SignInLimits } from "../guard/sign-in-limits.ts";
import { startedReply, startSession } from "../sessions/start-session.ts";

/** `POST /admin/v1/bootstrap`: creates the first operator and signs them in. */
export function bootstrapRoute(services: SignInServices, limits: SignInLimits): Route {
  return anonymousRoute("bootstrap", (call) => makeOperator(services, limits, call));
}

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
  const passwordHash = await passwords.hash(password, call.signal);
  const facts = { email, name: name ?? "", role: "operator", passwordHash } as const;
  const user = newUser(facts, clock.now(), random);
  const started = await change(services, callOf(call, user), async (made) => {
    // Of two concurrent requests, only one may create the first operator.
    if (await hasOperator(made.transaction)) throw refuse("an operator already exists");
    await insertUser(made, user);
    return startSession(made, { ...beginning(services, call), user, how: "bootstrap" });
  });
  bootstrap.end();
  return { ...startedReply(started, services), status: 201 };
}
