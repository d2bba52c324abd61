import { scriptOf } from "../connection/valkey-connection.ts";

/** Where the name of each worker that joins is told. */
export const joinedChannel = "sluice:joined";

/**
 * Notes a worker, and names all that have reported lately. KEYS: the workers by the time of their
 * last report, and what is known of them. ARGV: the worker, how long a report counts in ms, the
 * channel of those that join, the version of the list that the worker knows, and a new name for the
 * server's memory.
 *
 * Returns the version, the name of the memory and its age in ms, then the workers if their version
 * is another one. A name that is gone tells that the server has lost everything; the first worker to
 * notice that gives it a new one.
 */
export const fleetScript = scriptOf(
  "fleet",
  `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life = tonumber(ARGV[2])
local version, memory, since = unpack(redis.call('HMGET', KEYS[2], 'version', 'memory', 'since'))
local gone = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - life)
local joined = redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], 2 * life)
if joined == 1 then redis.call('PUBLISH', ARGV[3], ARGV[1]) end
if joined == 1 or gone > 0 or not version then
  version = time[1] .. '.' .. time[2] .. '.' .. ARGV[1]
  redis.call('HSET', KEYS[2], 'version', version)
end
if not memory then
  memory, since = ARGV[5], string.format('%.0f', now)
  redis.call('HSET', KEYS[2], 'memory', memory, 'since', since)
end
redis.call('PEXPIRE', KEYS[2], 3600000)
local reply = { version, memory, now - since }
if version == ARGV[4] then return reply end
for _, worker in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do reply[#reply + 1] = worker end
return reply`,
);
