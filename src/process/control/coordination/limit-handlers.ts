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
import type { Member } from "./member.ts";

/** A limit store that answers at once. */
export type SyncLimits = Pick<
  MemoryLimitStore,
  "count" | "uncount" | "acquire" | "use" | "settle" | "slot"
>;

/** Decides for a worker under the limits that all share. */
export function limitHandlers(limits: SyncLimits, member: Member): Handlers<LimitMessages> {
  const { openCalls } = member;
  return {
    "limits.count": (scopes) =>
      member.when(() => countDecisionToWire(limits.count(scopesFromWire(scopes)))),
    "limits.uncount": (counted) => member.when(() => limits.uncount(countedFromWire(counted))),
    "limits.acquire": (request) =>
      member.when(() => {
        const decision = limits.acquire(requestFromWire(request));
        if (decision.isAdmitted) openCalls.add(request.callId);
        return decisionToWire(decision, limits.slot);
      }),
    "limits.use": ({ callId, tokens }) => member.when(() => limits.use(callId, tokens)),
    "limits.settle": ({ callId, tokens }) =>
      member.when(() => {
        openCalls.delete(callId);
        limits.settle(callId, tokens);
      }),
    "limits.heard": () => member.when(() => undefined),
  };
}
