import { scriptOf } from "../connection/valkey-connection.ts";

/**
 * Keeps a refusal, and drops the oldest ones beyond the bounds. KEYS: a hash of texts by request
 * id, one of the subjects' keys by request id, the ids by time, and those of the subject by time.
 * ARGV: the id, the time, the text, the two bounds, and how long all last after the newest, in ms.
 */
export const keepScript = scriptOf(
  "keep-refusal",
  `local texts, owners, times, own = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, at = ARGV[1], ARGV[2]
redis.call('HSET', texts, id, ARGV[3])
redis.call('HSET', owners, id, own)
redis.call('ZADD', times, at, id)
redis.call('ZADD', own, at, id)
local function drop(old)
  -- Under the same hash tag as all others.
  local owner = redis.call('HGET', owners, old)
  if owner then redis.call('ZREM', owner, old) end
  redis.call('ZREM', times, old)
  redis.call('HDEL', owners, old)
  redis.call('HDEL', texts, old)
end
for _, old in ipairs(redis.call('ZRANGE', own, 0, -1 - tonumber(ARGV[4]))) do drop(old) end
local spare = redis.call('ZCARD', times) - tonumber(ARGV[5])
if spare > 0 then
  for _, old in ipairs(redis.call('ZRANGE', times, 0, spare - 1)) do drop(old) end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[6]) end
return 0`,
);
