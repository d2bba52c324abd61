import type { Clock } from "../../../domain/clock.ts";
import type { ValkeyConnection } from "../../../store/coordinator/valkey/connection/valkey-connection.ts";
import { ValkeyJoins } from "../../../store/coordinator/valkey/joins/valkey-joins.ts";
import { ValkeyRouting } from "../../worker/coordination/allotted/valkey-routing.ts";
import type { SharedCoordinator } from "./shared-limit-store.ts";

/** What workers of several gateways share besides limits. */
export function newSharedCoordinator(
  connection: ValkeyConnection,
  clock: Clock,
): SharedCoordinator & { close(): Promise<void> } {
  const options = { connection, clock, process: crypto.randomUUID() };
  const routing = new ValkeyRouting(options);
  const joins = new ValkeyJoins(options);
  return {
    routing,
    joins,
    async close(): Promise<void> {
      joins.close();
      await routing.close();
    },
  };
}
