import type { Clock } from "../../src/domain/clock.ts";
import {
  scriptOf,
  type ValkeyConnection,
  type ValkeyScript,
} from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";

/**
 * A connection whose scripts read the time of a test's clock, sent as two more parameters. Keys
 * expire in that time as well.
 */
export function steeredBy(
  clock: Pick<Clock, "monotonic">,
  connection: Pick<ValkeyConnection, "run"> & Partial<Pick<ValkeyConnection, "subscribe">>,
): Pick<ValkeyConnection, "run" | "subscribe"> {
  return {
    subscribe: (...of) => connection.subscribe?.(...of) ?? (() => undefined),
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
  const script = scriptOf(name, steering + text);
  known.set(digest, script);
  return script;
}

/** Stands between a script and the server: expiry times are kept in a hash of their own. */
const steering = `
local server, ends = redis, 'sluice-test:ends'
local time = {ARGV[#ARGV - 1], ARGV[#ARGV]}
local function endsAfter(ms) return time[1] * 1000 + math.floor(time[2] / 1000) + ms end
for _, key in ipairs(KEYS) do
  local last = server.call('HGET', ends, key)
  if last and tonumber(last) <= endsAfter(0) then
    server.call('DEL', key)
    server.call('HDEL', ends, key)
  end
end
local redis = {}
function redis.call(command, key, ...)
  if command == 'TIME' then return time end
  if command == 'PEXPIRE' then return server.call('HSET', ends, key, endsAfter(...)) end
  if command == 'DEL' then server.call('HDEL', ends, key) end
  if command ~= 'SET' then return server.call(command, key, ...) end
  local options, kept, lifetime = {...}, {}, nil
  for i = 1, #options do
    if options[i - 1] == 'PX' then lifetime = options[i]
    elseif options[i] ~= 'PX' and options[i] ~= 'KEEPTTL' then kept[#kept + 1] = options[i] end
  end
  local done = server.call('SET', key, unpack(kept))
  if done and lifetime then server.call('HSET', ends, key, endsAfter(lifetime)) end
  return done
end
`;
