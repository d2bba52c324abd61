import type { ValkeyScript } from "./client.ts";
import { parametersScript, sinceScript, timeScript } from "./since-script.ts";

/** Notes may be that much older than they seem: they were read before they were heard. */
const readMs = 500;

/**
 * Money in the server. A hash for each budget and period has a number for each process: what its calls
 * have spent and reserved since its start. Only the process writes it, always whole and with the number
 * of its command, so the next command repairs one that was lost, late or repeated. After any loss a new
 * generation begins, in which nothing is decided until every live process has told all of its own
 * again. What ended processes have spent is in the table by then, and written here as well, so later
 * decisions need no complete table. One that ended may have left a reservation here, so a minute later
 * its number becomes what the table has.
 *
 * Keys, from one of those of a script on: who has told, then for each budget the hash and a key that
 * remains when the hash is deleted.
 */
export const spendScript = `
local function whole(number) return string.format('%.0f', number) end

local function numbersOf(text)
  local number, own, reserved = string.match(text or '', '^(%d+) (%d+) (%d+)$')
  return tonumber(number) or 0, tonumber(own) or 0, tonumber(reserved) or 0
end

-- Anything but a hash counts as lost.
local function fieldsOf(key)
  local fields, flat = {}, redis.pcall('HGETALL', key)
  if flat.err then
    redis.call('DEL', key)
    flat = {}
  end
  for i = 1, #flat, 2 do fields[flat[i]] = flat[i + 1] end
  return fields
end

-- The generation, and which processes have told all in it.
local function generationOf(key, since)
  local told = fieldsOf(key)
  local n = tonumber(told['.n'] or nil)
  if told['.since'] == whole(since) and n then return n, told end
  redis.call('DEL', key)
  redis.call('HSET', key, '.since', whole(since), '.n', whole(now))
  return now, {}
end

local function beginGeneration(key, n)
  n = math.max(n + 1, now)
  redis.call('HSET', key, '.n', whole(n))
  return n
end

local function isLost(fields, number, wasKey)
  if numbersOf(fields[process]) < number then return true end
  if next(fields) then return false end
  -- It was not used yet, unless it was deleted or evicted.
  local _, _, evicted = sinceOf()
  local was = redis.call('GET', wasKey)
  redis.call('DEL', wasKey)
  return was or evicted and evictedKeys() > evicted
end

local function writeNumbers(at, lifeMs, ...)
  redis.call('HSET', KEYS[at], ...)
  redis.call('PEXPIRE', KEYS[at], lifeMs)
  redis.call('SET', KEYS[at + 1], '1', 'PX', lifeMs)
end

-- Nothing when all budgets have room, and the numbers are written. Else { 4, now, slot, which,
-- spent, reserved }, or { 5, now, slot, 0 } when that is not known.
local function spend(first, since)
  local unknown = { 5, now, slot, 0 }
  local noteAge, isComplete = takeNumber(), takeNumber() == 1
  local live, writes, ended = {}, {}, {}
  for i = 1, takeNumber() do live[i] = take() end
  local n, told = generationOf(KEYS[first], since)
  if noteAge + ${readMs} > now - n then return unknown end
  for at = first + 1, #KEYS, 2 do
    local lifeMs, known, limit, request, text =
      takeNumber(), takeNumber(), takeNumber(), takeNumber(), take()
    local number, sum, held = numbersOf(text)
    local numbers = fieldsOf(KEYS[at])
    if isLost(numbers, known, KEYS[at + 1]) then
      beginGeneration(KEYS[first], n)
      return unknown
    end
    -- A later command of this process has come before.
    if numbersOf(numbers[process]) >= number then return unknown end
    local isNew = tonumber(numbers['.n'] or nil) ~= n
    if isNew then
      if not isComplete then return unknown end
      for _, of in ipairs(live) do
        if tonumber(told[of] or nil) ~= n then return unknown end
      end
    end
    numbers[process], numbers['.n'] = nil, nil
    for i = 1, takeNumber() do
      local of, stored = take(), takeNumber()
      local _, own, reserved = numbersOf(numbers[of])
      if isNew and of ~= '' and not numbers[of] then
        ended[#ended + 1] = { KEYS[at], of, '0 ' .. whole(stored) .. ' 0' }
      end
      if of ~= '' then stored = math.max(own, stored) end
      sum, held, numbers[of] = sum + stored, held + reserved, nil
    end
    for i = 1, takeNumber() do
      local of, stored = take(), takeNumber()
      sum, numbers[of] = sum + stored, nil
      ended[#ended + 1] = { KEYS[at], of, '0 ' .. whole(stored) .. ' 0' }
    end
    for _, other in pairs(numbers) do
      local _, own, reserved = numbersOf(other)
      sum, held = sum + own, held + reserved
    end
    if sum > limit then
      return { 4, now, slot, (at - first - 1) / 2, sum - held, held - request }
    end
    writes[#writes + 1] = { at, lifeMs, process, text }
  end
  for _, write in ipairs(ended) do redis.call('HSET', write[1], write[2], write[3]) end
  for _, write in ipairs(writes) do
    writeNumbers(write[1], write[2], write[3], write[4], '.n', whole(n))
  end
  return nil
end
`;

/** Decides about money alone: { 0, now, slot }, or what `spend` returns. */
export const decideSpendScript: ValkeyScript = {
  name: "spend",
  text: `${timeScript}${sinceScript}${parametersScript}${spendScript}
return spend(2, sinceNow()) or { 0, now, slot }
`,
};

/**
 * Writes what this process has spent, and hears in which generation it is to tell all of it:
 * { 0, now, generation, 1 if it has }. A generation as a parameter: all is told by now.
 */
export const tellSpendScript: ValkeyScript = {
  name: "tellspend",
  text: `${timeScript}${sinceScript}${parametersScript}${spendScript}
local n, told = generationOf(KEYS[2], sinceNow())
local asked = takeNumber()
for at = 3, #KEYS, 2 do
  local lifeMs, known, text = takeNumber(), takeNumber(), take()
  local fields = fieldsOf(KEYS[at])
  if isLost(fields, known, KEYS[at + 1]) then n = beginGeneration(KEYS[2], n) end
  if numbersOf(fields[process]) < numbersOf(text) then
    writeNumbers(at, lifeMs, process, text)
  end
end
if asked == n then
  redis.call('HSET', KEYS[2], process, whole(n))
  told[process] = n
end
return { 0, now, n, tonumber(told[process] or nil) == n and 1 or 0 }
`,
};
