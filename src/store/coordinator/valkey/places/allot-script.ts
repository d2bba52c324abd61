import { allotmentLifeMs } from "../../../allotments.ts";

/** How long a wish stands without being repeated. */
const wishLifeMs = 1_500;
/** A wish is news again after this time: the news may have been lost. */
const repeatMs = 400;
/** How long a process keeps the one place that does not divide evenly, while others wait for it. */
const turnMs = 200;

/**
 * Divides the places of one bound. KEYS: a hash with one field for each process. ARGV: the process,
 * the channel of news, then the numbers of the wish. Returns the allotment and the fair part, -1
 * while nobody else waits; nothing for a wish that comes late.
 *
 * A field has: places, wanted, wanted first, accounts, time of the last grant, sequence, time of
 * the last news, end of the wish, end of the allotment.
 */
export const allotScript = `
local me, channel = ARGV[1], ARGV[2]
local limit, sequence, used, kept, wanted, first, accounts = tonumber(ARGV[3]), tonumber(ARGV[4]),
  tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local own = {name = me, places = 0, wanted = 0, since = now, sequence = -1, toldAt = 0}
local all, held = {}, 0
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
  local p, w, f, a, since, s, toldAt, wishEnd, lifeEnd = string.match(fields[at + 1],
    '(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)')
  local entry = {name = fields[at], places = tonumber(p), wanted = tonumber(w), first = tonumber(f),
    accounts = tonumber(a), since = tonumber(since), sequence = tonumber(s), toldAt = tonumber(toldAt)}
  if tonumber(lifeEnd) <= now then
    redis.call('HDEL', KEYS[1], entry.name)
  else
    if tonumber(wishEnd) <= now then entry.wanted, entry.first = 0, 0 end
    if entry.name == me then
      own = entry
    else
      all[#all + 1] = entry
      held = held + entry.places
    end
  end
end
if own.sequence >= sequence then return {} end

-- What is in use stays, even above the limit: calls are never cut.
local before = own.places
own.places = math.max(used, math.min(kept, limit - held))
if own.places < before then own.since = now end
local isNews = wanted > own.wanted or now - own.toldAt >= ${repeatMs}
own.wanted, own.first, own.accounts, own.sequence = wanted, first, math.max(accounts, 1), sequence
all[#all + 1] = own

-- The most even division: of 'free' places, each gets what lifts it to the same places for each of
-- its accounts, and no more than it wants. The rest goes to those with the fewest, longest ago.
local function divide(free, base, want)
  local total = 0
  for _, e in ipairs(all) do total = total + e[want] end
  local got, left = {}, free
  if total <= free then
    for _, e in ipairs(all) do got[e.name] = e[want] end
    return got, free - total
  end
  local low, high = 0, limit + total + 1
  for _ = 1, 40 do
    local level, sum = (low + high) / 2, 0
    for _, e in ipairs(all) do
      sum = sum + math.max(0, math.min(e[want], math.floor(level * e.accounts) - e[base]))
    end
    if sum <= free then low = level else high = level end
  end
  for _, e in ipairs(all) do
    got[e.name] = math.max(0, math.min(e[want], math.floor(low * e.accounts) - e[base]))
    left = left - got[e.name]
  end
  local rest = {}
  for _, e in ipairs(all) do
    if got[e.name] < e[want] then rest[#rest + 1] = e end
  end
  table.sort(rest, function(a, b)
    local x, y = (a[base] + got[a.name]) / a.accounts, (b[base] + got[b.name]) / b.accounts
    if x ~= y then return x < y end
    if base == 'none' and a.places ~= b.places then return a.places < b.places end
    if a.since ~= b.since then return a.since < b.since end
    return a.name < b.name
  end)
  for _, e in ipairs(rest) do
    if left <= 0 then break end
    got[e.name] = got[e.name] + 1
    left = left - 1
  end
  return got, 0
end

local free = math.max(0, limit - held - own.places)
for _, e in ipairs(all) do e.rest, e.none = e.wanted - e.first, 0 end
local firsts, afterFirsts = divide(free, 'places', 'first')
local others, spare = divide(afterFirsts, 'places', 'rest')
local grant = firsts[me] + others[me]
if wanted > 0 and grant == wanted then
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
  local parts = divide(math.max(0, limit - firstsWait), 'none', 'demand')
  fair = parts[me]
  if own.places > fair and now - own.since < ${turnMs} then fair = math.min(own.places, fair + 1) end
  if grant > 0 then fair = math.max(fair, own.places) end
end

if own.wanted > 0 and isNews then
  own.toldAt = now
  redis.call('PUBLISH', channel, 'wanted ' .. KEYS[1] .. ' ' .. me)
end
if own.places == 0 and own.wanted == 0 then
  redis.call('HDEL', KEYS[1], me)
else
  redis.call('HSET', KEYS[1], me, string.format('%d %d %d %d %d %d %d %d %d', own.places, own.wanted,
    own.first, own.accounts, own.since, sequence, own.toldAt, now + ${wishLifeMs}, now + ${allotmentLifeMs}))
  redis.call('PEXPIRE', KEYS[1], ${2 * allotmentLifeMs})
end

if own.places < before then
  local winners = {}
  for _, e in ipairs(all) do
    if e ~= own and firsts[e.name] + others[e.name] > 0 then winners[#winners + 1] = e.name end
  end
  if #winners > 0 then
    redis.call('PUBLISH', channel, 'free ' .. KEYS[1] .. ' ' .. table.concat(winners, ' '))
  end
end
return {own.places, fair}
`;
