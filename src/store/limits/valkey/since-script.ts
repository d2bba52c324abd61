/** The server's time, in milliseconds, and its slot. */
export const timeScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local slot = math.floor(now / 1000)
`;

/**
 * The first key of each script says since when the server has all data, in milliseconds, and of
 * which run and how many evictions it knew then. Whoever finds that it has lost some begins anew.
 */
export const sinceScript = `
local function sinceOf()
  local found = redis.pcall('GET', KEYS[1])
  local since, run, evicted =
    string.match(type(found) == 'string' and found or '', '^(%d+):(%x*):(%d*)$')
  since = tonumber(since)
  if since and since <= now then return since, run, tonumber(evicted) end
  return nil, '', nil
end

local function beginAt(since, run, evicted)
  redis.call('SET', KEYS[1], string.format('%.0f:%s:%s', since, run, evicted or ''))
end

local function sinceNow()
  local since = sinceOf()
  if not since then beginAt(now, '', nil) end
  return since or now
end

local function evictedKeys()
  return tonumber(string.match(redis.call('INFO', 'stats'), 'evicted_keys:(%d+)') or 0)
end
`;

export const parametersScript = `
local taken = 0
local function take()
  taken = taken + 1
  return ARGV[taken]
end
local function takeNumber() return tonumber(take()) end
local process = take()
`;
