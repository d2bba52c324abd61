import type { Config } from "../../../config/config.ts";
import { parseValkeyUrl } from "../../../domain/addresses/valkey-address.ts";
import type { Clock } from "../../../domain/clock.ts";
import { connectValkey } from "../../../store/coordinator/valkey/connection/valkey-connection.ts";
import { keepScript } from "../../../store/coordinator/valkey/refusals/keep-script.ts";
import { ValkeyRefusals } from "../../../store/coordinator/valkey/refusals/valkey-refusals.ts";
import type { RefusalStore } from "../../../store/refusal-store.ts";

/** Nobody waits for its answers but operators. */
const timeoutMs = 1_000;

/** On a connection of the control process, which workers do not use. */
export async function openValkeyRefusals(
  { url, authorities }: Exclude<Config["limits"]["store"], "memory">,
  clock: Clock,
): Promise<RefusalStore> {
  const address = parseValkeyUrl(url.reveal());
  if (address === undefined) throw new TypeError("limits.store was not checked");
  const scripts = [keepScript];
  const connection = connectValkey({ address, timeoutMs, clock, scripts, authorities });
  await connection.open();
  return new ValkeyRefusals(connection);
}
