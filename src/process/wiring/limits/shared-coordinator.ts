import type { Clock } from "../../../domain/clock.ts";
import type { ValkeyConnection } from "../../../store/coordinator/valkey/connection/valkey-connection.ts";
import type { Fleet } from "../../../store/coordinator/valkey/fleet/fleet.ts";
import { ValkeyRouting } from "../../worker/coordination/allotted/valkey-routing.ts";
import type { SharedCoordinator } from "./shared-limit-store.ts";

/** What workers of several gateways share besides limits. */
export function newSharedCoordinator(
  connection: ValkeyConnection,
  { clock, fleet }: { readonly clock: Clock; readonly fleet: Fleet },
): SharedCoordinator & { close(): Promise<void> } {
  const routing = new ValkeyRouting({ connection, clock, fleet });
  return { routing, close: () => routing.close() };
}
