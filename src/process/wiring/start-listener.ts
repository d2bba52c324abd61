import type { ListenAddress } from "../../config/config.ts";
import { createDispatch } from "../../edge/dispatch/dispatch.ts";
import type { DispatchOptions } from "../../edge/dispatch/dispatch-options.ts";
import { errorReply, toGatewayError } from "../../edge/replies/error-reply.ts";
import { listen, type Listener, type PortUse } from "../../edge/listen.ts";
import type { RefusalLog } from "../../admission/refusals/refusal-log.ts";
import { newRequestId } from "../program.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";

export interface ListenerPlan extends Omit<DispatchOptions, "onHandled" | "newRequestId"> {
  readonly address: ListenAddress;
  readonly idleTimeoutMs: number;
  readonly portUse?: PortUse | undefined;
  readonly events: TelemetryEvents;
  readonly refusals: Pick<RefusalLog, "record">;
}

/** Opens a listener with its routes. Throws if the address is taken. */
export function startListener(options: ListenerPlan): Listener {
  const { address, idleTimeoutMs, portUse, events, refusals, ...plan } = options;
  const nextId = (): string => newRequestId(plan.clock);
  const onHandled: DispatchOptions["onHandled"] = (event) => {
    events.requestHandled(event);
    if (event.refusal !== undefined) refusals.record(event.refusal);
  };
  const handle = createDispatch({ ...plan, newRequestId: nextId, onHandled });
  const onError = (error: unknown): Response => {
    const id = nextId();
    events.unhandled(id, error);
    const { status, headers, body } = errorReply(toGatewayError(error));
    return new Response(body, { status, headers: { ...headers, "x-request-id": id } });
  };
  const paths = plan.routes.plainPaths;
  return listen({ ...address, paths, idleTimeoutMs, portUse, handle, onError });
}
