import type { ValkeyScript } from "./client.ts";
import { parametersScript, sinceScript, timeScript } from "./since-script.ts";

/** Notes may be that much older than they seem: the database was read before they arrived. */
const readMs = 500;
/** By then all processes have read what one had not stored when it ended. */
const endedAfterMs = 60_000;
/** Marks of processes that have ended. */
const markLifeMs = 24 * 3_600_000;

/**
 * Budgets in the server: a hash for each budget and period.
 *
 * - A field for each process has the number of its last command, what its calls have spent and reserved
 *   since its start, and what of it is reserved. Only the process writes it, always whole. So the next
 *   command repairs one that was lost, late or repeated.
 * - `.table` has what the database knows of processes that have ended, with the epoch of that knowledge;
 *   later knowledge replaces it. Whoever brings it removes the fields of processes that have ended, with
 *   reservations that nobody settles any more.
 * - After any loss a generation begins. A hash of an earlier one decides nothing until every live process
 *   has a mark in the new one, which says that the server has all of its fields, and the table is read
 *   again. Processes renew their marks each second.
 *
 * Keys, from one of those of a script on: the marks, then a hash for each budget.
 */
const hashScript = `
local function whole(number) return string.format('%.0f', number) end

local function numbersOf(field)
  local number, own, reserved = string.match(field or '', '^(%d+) (%d+) (%d+)$')
  return tonumber(number) or 0, tonumber(own) or 0, tonumber(reserved) or 0
end

local function pairOf(field)
  local one, other = string.match(field or '', '^(%-?%d+) (%-?%d+)$')
  return tonumber(one) or -1, tonumber(other) or 0
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

-- When the generation began, unless the server's clock was set back since then, and the marks in it.
local function generationOf(key, since)
  local marks = fieldsOf(key)
  local began, of = pairOf(marks['.generation'])
  if began >= 0 and began <= now and of == since then return began, marks end
  redis.call('DEL', key)
  redis.call('HSET', key, '.generation', whole(now) .. ' ' .. whole(since))
  return now, {}
end

local function write(key, lifeMs, ...)
  redis.call('HSET', key, ...)
  redis.call('PEXPIRE', key, lifeMs)
end
`;

export const reserveScript = `${hashScript}
-- Of another process.
local function isProcess(of) return string.sub(of, 1, 1) ~= '.' and of ~= process end

-- What the table has counts for processes that have ended, and not their fields.
local function bringTable(key, fields, stored, epoch, hasEnded)
  if epoch < pairOf(fields['.table']) then return end
  local sum = 0
  for of, nano in pairs(stored) do
    local number, own, reserved = numbersOf(fields[of])
    if of == '' or hasEnded(of) then sum = sum + nano
    elseif nano > own then
      fields[of] = whole(number) .. ' ' .. whole(nano) .. ' ' .. whole(reserved)
      redis.call('HSET', key, of, fields[of])
    end
  end
  for of in pairs(fields) do
    if isProcess(of) and hasEnded(of) then
      redis.call('HDEL', key, of)
      fields[of] = nil
    end
  end
  fields['.table'] = whole(epoch) .. ' ' .. whole(sum)
  redis.call('HSET', key, '.table', fields['.table'])
end

-- Nothing when all budgets have room, and the numbers are written. Else { 4, now, slot, { which, spent,
-- reserved of each that is full } }, with none when nobody knows.
local function reserve(first, since)
  local unknown = { 4, now, slot, {} }
  local noteAge, epoch, isComplete = takeNumber(), takeNumber(), takeNumber() == 1
  local live, isListed = {}, {}
  for i = 1, takeNumber() do live[i] = take() end
  for _, of in ipairs(live) do isListed[of] = true end
  for _ = 1, takeNumber() do isListed[take()] = true end
  local began, marks = generationOf(KEYS[first], since)
  local function hasEnded(of)
    local _, at = pairOf(marks[of])
    return isComplete and not isListed[of] and now - math.max(at, began) > ${endedAfterMs}
  end
  local function isKnown()
    local _, _, evicted = sinceOf()
    if not isComplete or noteAge + ${readMs} > now - began then return false end
    if evicted and evictedKeys() > evicted then return false end
    for _, of in ipairs(live) do
      if pairOf(marks[of]) ~= began then return false end
    end
    return true
  end
  local full, writes = {}, {}
  for at = first + 1, #KEYS do
    local lifeMs, limit, request, text = takeNumber(), takeNumber(), takeNumber(), take()
    local count, stored = takeNumber(), {}
    for _ = 1, count do
      local of = take()
      stored[of] = takeNumber()
    end
    local fields = fieldsOf(KEYS[at])
    local number, sum, reserved = numbersOf(text)
    -- A later command of this process has come before.
    if numbersOf(fields[process]) >= number then return unknown end
    local isNew = tonumber(fields['.generation']) ~= began
    if isNew and (count < 0 or not isKnown()) then return unknown end
    if count >= 0 then bringTable(KEYS[at], fields, stored, epoch, hasEnded) end
    if isNew then write(KEYS[at], lifeMs, '.generation', whole(began)) end
    for of, field in pairs(fields) do
      if isProcess(of) then
        local _, own, ofRunning = numbersOf(field)
        sum, reserved = sum + own, reserved + ofRunning
      end
    end
    local _, ofTable = pairOf(fields['.table'])
    sum = sum + ofTable
    if sum > limit then
      for _, of in ipairs({ at - first - 1, sum - reserved, reserved - request }) do
        full[#full + 1] = of
      end
    end
    writes[#writes + 1] = { KEYS[at], lifeMs, text }
  end
  if #full > 0 then return { 4, now, slot, full } end
  for _, of in ipairs(writes) do write(of[1], of[2], process, of[3]) end
  return nil
end
`;

/**
 * Writes what this process has spent and reserved, and renews its mark: { 0, now, generation, 1 if it has
 * one }. A generation as a parameter: the server has all fields of the process by now.
 */
export const markScript: ValkeyScript = {
  name: "mark",
  text: `${timeScript}${sinceScript}${parametersScript}${hashScript}
local began, marks = generationOf(KEYS[2], sinceNow())
local complete = takeNumber()
for at = 3, #KEYS do
  local lifeMs, text = takeNumber(), take()
  if numbersOf(fieldsOf(KEYS[at])[process]) < numbersOf(text) then
    write(KEYS[at], lifeMs, process, text)
  end
end
local isMarked = complete == began or pairOf(marks[process]) == began
if isMarked then redis.call('HSET', KEYS[2], process, whole(began) .. ' ' .. whole(now)) end
for of, mark in pairs(marks) do
  local _, at = pairOf(mark)
  if of ~= '.generation' and now - at > ${markLifeMs} then redis.call('HDEL', KEYS[2], of) end
end
return { 0, now, began, isMarked and 1 or 0 }
`,
};
