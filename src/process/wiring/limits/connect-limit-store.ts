import type { Config } from "../../../config/config.ts";
import { parseValkeyUrl } from "../../../domain/addresses/valkey-address.ts";
import {
  connectValkey,
  type ValkeyConnection,
  type ValkeyConnectionOptions,
} from "../../../store/coordinator/valkey/connection/valkey-connection.ts";

export type ValkeyStore = Exclude<Config["limits"]["store"], "memory">;

/** A connection to the server of `limits.store`, which its caller opens. */
export function connectLimitStore(
  { url, authorities }: ValkeyStore,
  options: Pick<ValkeyConnectionOptions, "timeoutMs" | "clock" | "scripts">,
): ValkeyConnection {
  const address = parseValkeyUrl(url.reveal());
  if (address === undefined) throw new TypeError("limits.store was not checked");
  return connectValkey({ ...options, address, authorities });
}
