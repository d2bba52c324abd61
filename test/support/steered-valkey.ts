import type { Clock } from "../../src/domain/clock.ts";
import {
  scriptOf,
  type ValkeyConnection,
  type ValkeyScript,
} from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";

/**
 * A connection whose scripts read the time of a test's clock, sent as two more parameters.
 */
export function steeredBy(
  clock: Pick<Clock, "monotonic">,
  connection: Pick<ValkeyConnection, "run">,
): Pick<ValkeyConnection, "run"> {
  return {
    run(script, keys, parameters) {
      const now = clock.monotonic();
      const time = [Math.floor(now / 1_000), Math.floor((now % 1_000) * 1_000)].map(String);
      return connection.run(steered(script), keys, [...parameters, ...time]);
    },
  };
}

const known = new Map<string, ValkeyScript>();

/** The script with the server's time replaced by that of its last parameters. */
export function steered({ name, text, digest }: ValkeyScript): ValkeyScript {
  const found = known.get(digest);
  if (found !== undefined) return found;
  const time = "{ARGV[#ARGV - 1], ARGV[#ARGV]}";
  const script = scriptOf(name, text.replaceAll("redis.call('TIME')", time));
  known.set(digest, script);
  return script;
}
