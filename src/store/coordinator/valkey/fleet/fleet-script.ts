import { scriptOf } from "../connection/valkey-connection.ts";

/** Where the name of each worker that joins is told. */
export const joinedChannel = "sluice:joined";

/**
 * Notes a worker, and names all that have reported lately. KEYS: the workers, and the version of
 * their list. ARGV: the worker, how long a report counts in ms, the channel of those that join, and
 * the version that the worker knows. Returns the version, then the names if it is another one.
 */
export const fleetScript = scriptOf(
  "fleet",
  `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life = tonumber(ARGV[2])
local gone = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - life)
local joined = redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], 2 * life)
local version = redis.call('GET', KEYS[2])
if joined == 1 then redis.call('PUBLISH', ARGV[3], ARGV[1]) end
if joined == 1 or gone > 0 or not version then
  version = time[1] .. '.' .. time[2] .. '.' .. ARGV[1]
  redis.call('SET', KEYS[2], version)
end
redis.call('PEXPIRE', KEYS[2], 2 * life)
if version == ARGV[4] then return {version} end
local reply = redis.call('ZRANGE', KEYS[1], 0, -1)
table.insert(reply, 1, version)
return reply`,
);
