import type { MemoryLimitStore } from "../../../store/coordinator/memory/limit-store.ts";
import type { Handlers } from "../../link/link.ts";
import {
  countDecisionToWire,
  countedFromWire,
  decisionToWire,
  requestFromWire,
  scopesFromWire,
  wishOf,
} from "../../link/limit-wire.ts";
import type { LimitMessages } from "../../link/messages.ts";
import type { WorkerLeases } from "./leases.ts";
import type { Member } from "./member.ts";

/** A limit store that answers at once. */
export type SyncLimits = Pick<
  MemoryLimitStore,
  "count" | "uncount" | "acquire" | "use" | "settle" | "slot"
>;

/** Decides for a worker under the limits that all share. */
export function limitHandlers(
  limits: SyncLimits,
  leases: WorkerLeases,
  member: Member,
): Handlers<LimitMessages> {
  const { openCalls } = member;
  return {
    "limits.count": (scopes) =>
      member.when(() =>
        leases.decide({
          decide: () => limits.count(scopesFromWire(scopes)),
          answer: countDecisionToWire,
        }),
      ),
    "limits.uncount": (counted) => member.when(() => limits.uncount(countedFromWire(counted))),
    "limits.acquire": (ask) =>
      member.when(() => {
        const request = requestFromWire(ask);
        return leases.decide({
          decide: () => limits.acquire(request),
          answer: (decision) => {
            const answer = decisionToWire(decision, limits.slot);
            if (!decision.isAdmitted) return answer;
            openCalls.add(request.callId);
            const { state } = decision;
            leases.grant({ scopes: request.scopes, wanted: wishOf(ask), state });
            return answer;
          },
        });
      }),
    "limits.returned": (rests) =>
      member.when(() => leases.returned(rests, (callId) => openCalls.add(callId))),
    "limits.use": ([callId, tokens]) => member.when(() => limits.use(callId, tokens)),
    "limits.settle": ([callId, tokens]) =>
      member.when(() => {
        openCalls.delete(callId);
        limits.settle(callId, tokens);
      }),
    "limits.heard": () => member.when(() => undefined),
  };
}
