import type { ListenAddress } from "./config/config.ts";
import { createDispatch, type DispatchOptions } from "./http/dispatch.ts";
import { errorReply, toGatewayError } from "./http/error-reply.ts";
import { listen, type Listener } from "./http/listen.ts";
import type { TelemetryEvents } from "./telemetry/events.ts";

/** What the listeners of one app share. */
export interface ListenerParts extends Omit<DispatchOptions, "routes" | "edge" | "onHandled"> {
  readonly idleTimeoutMs: number;
  readonly events: TelemetryEvents;
}

export interface ListenerPlan extends ListenerParts, Pick<DispatchOptions, "routes" | "edge"> {
  readonly address: ListenAddress;
}

/** Opens one listener with its routes. Throws when the address cannot be taken. */
export function startListener({ address, idleTimeoutMs, events, ...plan }: ListenerPlan): Listener {
  const onHandled: DispatchOptions["onHandled"] = (event) => events.requestHandled(event);
  const handle = createDispatch({ ...plan, onHandled });
  const onError = (error: unknown): Response => {
    const id = plan.newRequestId();
    events.unhandled(id, error);
    const { status, headers, body } = errorReply(toGatewayError(error));
    return new Response(body, { status, headers: { ...headers, "x-request-id": id } });
  };
  return listen({ ...address, idleTimeoutMs, handle, onError });
}
