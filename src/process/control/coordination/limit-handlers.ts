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
    "limits.count": (scopes) => after(limits.count(scopesFromWire(scopes)), countDecisionToWire),
    "limits.uncount": (counted) => limits.uncount(countedFromWire(counted)),
    "limits.acquire": (request) => after(limits.acquire(requestFromWire(request)), decisionToWire),
    "limits.use": ({ callId, tokens }) => limits.use(callId, tokens),
    "limits.settle": ({ callId, tokens }) => limits.settle(callId, tokens),
  };
}

/** At once if it can be: a promise for each decision is not free. */
function after<Value, Result>(
  value: Value | Promise<Value>,
  run: (value: Value) => Result,
): Result | Promise<Result> {
  return value instanceof Promise ? value.then(run) : run(value);
}
