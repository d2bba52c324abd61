import type { MemoryLimitStore } from "../../../store/coordinator/memory/limit-store.ts";
import type { Handlers } from "../../link/link.ts";
import {
  countDecisionToWire,
  countedFromWire,
  decisionToWire,
  requestFromWire,
  scopesFromWire,
} from "../../link/limit-wire.ts";
import type { LimitMessages } from "../../link/messages.ts";

/** A store that decides at once. */
export type DecidingLimits = Pick<
  MemoryLimitStore,
  "count" | "uncount" | "acquire" | "use" | "settle"
>;

/** Decides for workers under the limits that they share, at once: a promise for each is not free. */
export function limitHandlers(limits: DecidingLimits): Handlers<LimitMessages> {
  return {
    "limits.count": (scopes) => countDecisionToWire(limits.count(scopesFromWire(scopes))),
    "limits.uncount": (counted) => limits.uncount(countedFromWire(counted)),
    "limits.acquire": (request) => decisionToWire(limits.acquire(requestFromWire(request))),
    "limits.use": ({ callId, tokens }) => limits.use(callId, tokens),
    "limits.settle": ({ callId, tokens }) => limits.settle(callId, tokens),
  };
}
