import type { LimitStore } from "../../../store/store.ts";
import type { Handlers } from "../../link/link.ts";
import {
  countDecisionToWire,
  countedFromWire,
  decisionToWire,
  requestFromWire,
  scopesFromWire,
} from "../../link/limit-wire.ts";
import type { LimitMessages } from "../../link/messages.ts";

/** Decides for workers under the limits that they share. */
export function limitHandlers(limits: LimitStore): Handlers<LimitMessages> {
  return {
    "limits.count": async (scopes) =>
      countDecisionToWire(await limits.count(scopesFromWire(scopes))),
    "limits.uncount": (counted) => limits.uncount(countedFromWire(counted)),
    "limits.acquire": async (request) =>
      decisionToWire(await limits.acquire(requestFromWire(request))),
    "limits.use": ({ callId, tokens }) => limits.use(callId, tokens),
    "limits.settle": ({ callId, tokens }) => limits.settle(callId, tokens),
  };
}
