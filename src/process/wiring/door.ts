import type { ListenAddress } from "../../config/config.ts";
import { listen, type Listener, type ListenOptions } from "../../edge/listen.ts";

/** A listener without a handler yet: requests wait until there is one. */
export interface Door extends AsyncDisposable {
  /** From now on requests are handled, including those that waited. */
  open(handle: ListenOptions["handle"]): Listener;
}

export interface DoorPlan {
  readonly address: ListenAddress;
  readonly idleTimeoutMs: number;
}

/** Listens at the address of a process that still listens there. Throws if it cannot. */
export function buildDoor({ address, idleTimeoutMs }: DoorPlan): Door {
  const opened = Promise.withResolvers<ListenOptions["handle"]>();
  const listener = listen({
    ...address,
    idleTimeoutMs,
    portUse: "successor",
    handle: async (...asked) => (await opened.promise)(...asked),
    onError: () => new Response(undefined, { status: 500 }),
  });
  return {
    open(handle) {
      opened.resolve(handle);
      return listener;
    },
    [Symbol.asyncDispose]: () => listener.cut(),
  };
}
