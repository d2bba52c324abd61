import { scriptOf } from "../connection/valkey-connection.ts";

/** Where the name of each worker that joins is told. */
export const joinedChannel = "sluice:joined";

/** All workers together report more often than that. */
const silenceMs = 2_000;

/**
 * Notes a worker, and names all that have reported lately. KEYS: the workers by the time of their
 * last report, and what is known of them. ARGV: the worker, how long a report counts in ms, the
 * channel of those that join, the version of the list that the worker knows, a new name for the
 * server's memory, the time of the worker's last answered report, and since when data are valid as
 * far as the worker knows. Times are the server's, in ms.
 *
 * Returns the version, the name of the memory, its age, since when data are valid, and the time, then
 * the workers if their version is another one. The first worker that notices a loss gives the memory
 * a new name: the old one is gone, or the server does not know of a report any more that it has
 * answered. Then it has started with an older snapshot, or was a replica that lagged, and what it has
 * is not valid any more.
 */
export const fleetScript = scriptOf(
  "fleet",
  `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local life, reportedAt = tonumber(ARGV[2]), tonumber(ARGV[6])
local version, memory, since, validSince, newest, silentFrom, silentTo = unpack(redis.call('HMGET',
  KEYS[2], 'version', 'memory', 'since', 'valid', 'newest', 'silent-from', 'silent-to'))
validSince = math.max(tonumber(validSince or 0), tonumber(ARGV[7]))
newest = tonumber(newest or now)
silentFrom, silentTo = tonumber(silentFrom or 0), tonumber(silentTo or 0)
-- The data may be older: then, reports of this time were answered and are not known.
if now - newest > ${silenceMs} then silentFrom, silentTo = newest, now end
local before = redis.call('ZSCORE', KEYS[1], ARGV[1])
local gone = redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - life)
local joined = redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], 2 * life)
if joined == 1 then redis.call('PUBLISH', ARGV[3], ARGV[1]) end
if joined == 1 or gone > 0 or not version then
  version = time[1] .. '.' .. time[2] .. '.' .. ARGV[1]
end
local isUnknown = newest < reportedAt or silentFrom < reportedAt and reportedAt < silentTo
if before then isUnknown = isUnknown or tonumber(before) < reportedAt
else isUnknown = isUnknown or reportedAt > now - life end
-- Once a loss was noticed, reports from before tell nothing new.
local isOlder = memory and reportedAt >= tonumber(since) and isUnknown
if not memory or isOlder then memory, since = ARGV[5], now end
-- It grows even if the server's clock steps back.
if isOlder then validSince = math.max(now, validSince + 1) end
redis.call('HSET', KEYS[2], 'version', version, 'memory', memory,
  'since', string.format('%.0f', since), 'valid', string.format('%.0f', validSince),
  'newest', string.format('%.0f', math.max(now, newest)),
  'silent-from', string.format('%.0f', silentFrom), 'silent-to', string.format('%.0f', silentTo))
redis.call('PEXPIRE', KEYS[2], 3600000)
local reply = { version, memory, now - since, validSince, now }
if version == ARGV[4] then return reply end
for _, worker in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do reply[#reply + 1] = worker end
return reply`,
);
