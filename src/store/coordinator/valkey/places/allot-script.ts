import { allotmentLifeMs } from "../../../allotments.ts";

/** How long a wish stands without being repeated. */
const wishLifeMs = 1_500;
/** That places are wanted is news again after this time: the news may have been lost. */
const repeatMs = 400;
/** How long a process keeps the one place that does not divide evenly, for each one that it has. */
const turnMs = 200;

/**
 * Divides the places of one bound. KEYS: a hash with one field for each process. ARGV: the process,
 * the channel of news, then the numbers of the wish. Returns the allotment, the fair part, -1 while
 * nobody else waits, 1 if what the process had was not known, and how many places are free; nothing
 * for a wish that comes late.
 *
 * A field has: places, wanted, wanted first, accounts, time of the last grant, sequence, time of
 * the last news, end of the wish, end of the allotment.
 */
export const allotScript = `
local me, channel = ARGV[1], ARGV[2]
local limit, sequence, used, kept, wanted, first, accounts = tonumber(ARGV[3]), tonumber(ARGV[4]),
  tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local allotted = tonumber(ARGV[10])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local own = {name = me, places = 0, wanted = 0, since = now, sequence = -1, toldAt = 0}
local all, held, toldAt = {}, 0, 0
local match = string.match
local pattern = '(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)'
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  -- An addition turns text into a number faster than 'tonumber' does.
  local p, w, f, a, since, s, told, wishEnd, lifeEnd = match(fields[at + 1], pattern)
  if lifeEnd + 0 <= now then
    redis.call('HDEL', KEYS[1], fields[at])
  else
    local entry = {name = fields[at], places = p + 0, wanted = w + 0, first = f + 0,
      accounts = a + 0, since = since + 0}
    if wishEnd + 0 <= now then entry.wanted, entry.first = 0, 0 end
    if entry.wanted > 0 then toldAt = math.max(toldAt, told) end
    if entry.name == me then
      own = entry
      own.sequence, own.toldAt = s + 0, told + 0
    else
      all[#all + 1] = entry
      held = held + entry.places
    end
  end
end
if own.sequence >= sequence then return {} end
all[#all + 1] = own
-- What it has was lost, and perhaps what others have: all tell that before any gets more.
local isLost = own.sequence < 0 and allotted > 0

-- The most even division: of 'free' places, each gets what lifts it to the same places for each of
-- its accounts, and no more than it wants. The rest goes to those with the fewest, longest ago.
-- Returns what each gets, and what is left. With 'only', the rest is counted out to that one alone.
local function divide(free, base, want, only)
  local got, asking, total, high, most = {}, {}, 0, 0, 1
  for at = 1, #all do
    local e = all[at]
    if e[want] > 0 then
      asking[#asking + 1] = e
      got[e] = e[want]
      total = total + e[want]
      high = math.max(high, (e[base] + e[want]) / e.accounts + 1)
      most = math.max(most, e.accounts)
    end
  end
  if total <= free then return got, free - total end
  if free <= 0 then return {}, 0 end
  -- As fine as needed for each to get at most one of the rest.
  local low = 0
  while (high - low) * most > 1 do
    local level, sum = (low + high) / 2, 0
    for at = 1, #asking do
      local e = asking[at]
      local part = level * e.accounts - e[base]
      if part >= e[want] then sum = sum + e[want] elseif part > 0 then sum = sum + part - part % 1 end
    end
    if sum <= free then low = level else high = level end
  end
  local rest, left = {}, free
  for at = 1, #asking do
    local e = asking[at]
    got[e] = math.max(0, math.min(e[want], math.floor(low * e.accounts - e[base])))
    left = left - got[e]
    e.level = (e[base] + got[e]) / e.accounts
    if got[e] < e[want] then rest[#rest + 1] = e end
  end
  local function isAhead(a, b)
    if a.level ~= b.level then return a.level < b.level end
    if base == 'none' and a.places ~= b.places then return a.places < b.places end
    if a.since ~= b.since then return a.since < b.since end
    return a.name < b.name
  end
  if only == nil then
    table.sort(rest, isAhead)
    for at = 1, math.min(left, #rest) do got[rest[at]] = got[rest[at]] + 1 end
  elseif (got[only] or 0) < only[want] then
    for at = 1, #rest do
      if isAhead(rest[at], only) then left = left - 1 end
    end
    if left > 0 then got[only] = got[only] + 1 end
  end
  return got, 0
end

-- What each would get of what is free, and what would be left.
local function divideFree(only)
  for _, e in ipairs(all) do e.rest, e.none = e.wanted - e.first, 0 end
  local free = math.max(0, limit - held - own.places)
  local firsts, afterFirsts = divide(free, 'places', 'first', only)
  local others, spare = divide(afterFirsts, 'places', 'rest', only)
  return function(e) return (firsts[e] or 0) + (others[e] or 0) end, spare
end

-- What is in use stays, even above the limit: calls are never cut.
local places = math.max(used, math.min(kept, limit - held))
-- Then others may get more than before, and those hear of it.
local isGiving = places < own.places or wanted < own.wanted
local partBefore = isGiving and divideFree()
if places < own.places then own.since = now end
own.places, own.wanted, own.first, own.accounts = places, wanted, first, math.max(accounts, 1)
local partOf, spare = divideFree(not isGiving and own or nil)
local grant = isLost and 0 or partOf(own)
if wanted > 0 and grant == wanted and not isLost then
  -- A few more, so that not every call has to ask.
  grant = grant + math.floor(spare / (4 * #all))
end
own.places = own.places + grant
own.wanted = math.max(0, wanted - grant)
own.first = math.min(first, own.wanted)
if grant > 0 then own.since = now end

local othersWait, firstsWait = false, 0
for _, e in ipairs(all) do
  if e ~= own and e.wanted > 0 then
    othersWait = true
    firstsWait = firstsWait + e.first
  end
end
local fair = -1
if othersWait then
  for _, e in ipairs(all) do e.demand = e.places + e.wanted - e.first end
  own.demand = used + wanted
  fair = divide(math.max(0, limit - firstsWait), 'none', 'demand', own)[own] or 0
  local turn = ${turnMs} * math.max(1, fair)
  if own.places > fair and now - own.since < turn then fair = math.min(own.places, fair + 1) end
  if grant > 0 then fair = math.max(fair, own.places) end
end

-- All have heard it from one that still waits, and give back what they do not use.
if own.wanted > 0 and now - toldAt >= ${repeatMs} then
  own.toldAt = now
  redis.call('PUBLISH', channel, 'wanted ' .. KEYS[1] .. ' ' .. me)
end
if isLost and held == 0 then redis.call('PUBLISH', channel, 'lost ' .. KEYS[1] .. ' ' .. me) end
if own.places == 0 and own.wanted == 0 then
  redis.call('HDEL', KEYS[1], me)
else
  redis.call('HSET', KEYS[1], me, string.format('%d %d %d %d %d %d %d %d %d', own.places, own.wanted,
    own.first, own.accounts, own.since, sequence, own.toldAt, now + ${wishLifeMs}, now + ${allotmentLifeMs}))
  redis.call('PEXPIRE', KEYS[1], ${2 * allotmentLifeMs})
end

if isGiving then
  local winners = {}
  for _, e in ipairs(all) do
    if e ~= own and partOf(e) > partBefore(e) then winners[#winners + 1] = e.name end
  end
  if #winners > 0 then
    redis.call('PUBLISH', channel, 'free ' .. KEYS[1] .. ' ' .. table.concat(winners, ' '))
  end
end
return {own.places, fair, isLost and 1 or 0, math.max(0, limit - held - own.places)}
`;
