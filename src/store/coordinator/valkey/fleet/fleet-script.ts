import { scriptOf } from "../connection/valkey-connection.ts";

/** Where the name of each worker that joins is told. */
export const joinedChannel = "sluice:joined";

/**
 * Notes a worker, and names all that have reported lately. KEYS: the workers by the time of their
 * last report, and what is known of them. ARGV: the worker, how long a report counts in ms, the
 * channel of those that join, the version of the list that the worker knows, a new name for the
 * server's memory, the time of the worker's last answered report, and since when the memory is that
 * the worker knows. Times are the server's, in ms.
 *
 * Returns the version, the name of the memory, since when it is, and the time, then the workers if
 * their version is another one. The first worker that notices a loss gives the memory a new name:
 * the old one is gone, or the server does not know of a report any more that it has answered,
 * because it has started with an older snapshot, or was a replica that lagged.
 */
export const fleetScript = scriptOf(
  "fleet",
  `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life, reportedAt = tonumber(ARGV[2]), tonumber(ARGV[6])
local version, memory, since, newestAt =
  unpack(redis.call('HMGET', KEYS[2], 'version', 'memory', 'since', 'newest'))
since, newestAt = tonumber(since or 0), tonumber(newestAt or reportedAt)
local before = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or reportedAt)
local gone = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - life)
local joined = redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], 2 * life)
if joined == 1 then redis.call('PUBLISH', ARGV[3], ARGV[1]) end
if joined == 1 or gone > 0 or not version then
  version = time[1] .. '.' .. time[2] .. '.' .. ARGV[1]
end
if not memory or newestAt < reportedAt or before < reportedAt then
  -- Later than all before, whatever the clock does.
  memory, since = ARGV[5], math.max(now, since + 1, ARGV[7] + 1)
end
redis.call('HSET', KEYS[2], 'version', version, 'memory', memory, 'since',
  string.format('%.0f', since), 'newest', string.format('%.0f', math.max(now, newestAt)))
redis.call('PEXPIRE', KEYS[2], 3600000)
local reply = { version, memory, since, now }
if version == ARGV[4] then return reply end
for _, worker in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do reply[#reply + 1] = worker end
return reply`,
);
