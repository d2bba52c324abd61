import type { Clock } from "../../../domain/clock.ts";
import { keepScript } from "../../../store/coordinator/valkey/refusals/keep-script.ts";
import { ValkeyRefusals } from "../../../store/coordinator/valkey/refusals/valkey-refusals.ts";
import type { RefusalStore } from "../../../store/refusal-store.ts";
import { connectLimitStore, type ValkeyStore } from "./connect-limit-store.ts";

/** Nobody waits for its answers but operators. */
const timeoutMs = 1_000;

/** On a connection of the control process, which workers do not use. Nothing waits until it is open. */
export function openValkeyRefusals(store: ValkeyStore, clock: Clock): RefusalStore {
  const connection = connectLimitStore(store, { timeoutMs, clock, scripts: [keepScript] });
  void connection.open();
  return new ValkeyRefusals(connection);
}
