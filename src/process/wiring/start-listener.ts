import { rmSync } from "node:fs";
import type { ListenAddress } from "../../config/config.ts";
import { createDispatch } from "../../edge/dispatch/dispatch.ts";
import type { DispatchOptions } from "../../edge/dispatch/dispatch-options.ts";
import { errorReply, toGatewayError } from "../../edge/replies/error-reply.ts";
import { type Connections, listen, type Listener, type PortUse } from "../../edge/listen.ts";
import type { RefusalLog } from "../../admission/refusals/refusal-log.ts";
import { newRequestId } from "../program.ts";
import { serveUnix } from "../unix-server.ts";
import type { TelemetryEvents } from "../../telemetry/events/events.ts";

export interface ListenerPlan extends Omit<DispatchOptions, "onHandled" | "newRequestId"> {
  readonly address: ListenAddress;
  readonly idleTimeoutMs: number;
  readonly portUse?: PortUse | undefined;
  readonly events: TelemetryEvents;
  readonly refusals: Pick<RefusalLog, "record">;
}

/** Opens a listener with its routes. Throws if the address is taken. */
export function startListener({
  address,
  idleTimeoutMs,
  portUse,
  ...plan
}: ListenerPlan): Listener {
  const paths = plan.routes.plainPaths;
  const handlers = handlersOf(plan, () => newRequestId(plan.clock));
  return listen({ ...address, paths, idleTimeoutMs, portUse, ...handlers });
}

export type UnixPlan = Omit<ListenerPlan, "address" | "idleTimeoutMs" | "portUse">;

export interface UnixListener extends Disposable {
  readonly pendingRequests: number;
}

/**
 * Serves the same on a Unix socket that only this user may open. Who calls there names the request.
 * Throws when it cannot listen.
 */
export function startUnixListener(path: string, plan: UnixPlan): UnixListener {
  const { handle } = handlersOf(plan, ({ headers }) => {
    const named = headers.get("x-request-id") ?? "";
    return /^req_[0-9a-f]{32}$/.test(named) ? named : newRequestId(plan.clock);
  });
  const server = serveUnix({
    path,
    isUntimed: true,
    fetch(request) {
      const { pathname } = new URL(request.url);
      const sent = { segments: pathname.slice(1).split("/"), frequent: pathname };
      return handle(request, connections, sent);
    },
  });
  const leave = (): void => undefined;
  const connections: Connections = {
    keepAliveHint: "timeout=1",
    pauseIdleTimer: leave,
    resumeIdleTimer: leave,
    extendIdleTimer: leave,
    // The runtime has no timers for Unix sockets.
    cutSoon: () => false,
    peerAddress: () => undefined,
  };
  return {
    get pendingRequests(): number {
      return server.pendingRequests;
    },
    [Symbol.dispose]() {
      void server.stop(true);
      rmSync(path, { force: true });
    },
  };
}

function handlersOf(
  { events, refusals, ...plan }: UnixPlan,
  nextId: DispatchOptions["newRequestId"],
) {
  const onHandled: DispatchOptions["onHandled"] = (event) => {
    events.requestHandled(event);
    const told = event.refusal ?? event.audited?.refusal;
    if (told !== undefined) refusals.record(told);
  };
  const handle = createDispatch({ ...plan, newRequestId: nextId, onHandled });
  const onError = (error: unknown): Response => {
    const id = newRequestId(plan.clock);
    events.unhandled(id, error);
    const { status, headers, body } = errorReply(toGatewayError(error));
    return new Response(body, { status, headers: { ...headers, "x-request-id": id } });
  };
  return { handle, onError };
}
