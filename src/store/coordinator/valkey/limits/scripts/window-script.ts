import { leasesOfWindow } from "./leases-of-window.ts";

/**
 * The window of a scope as a script sees it: `UsageWindow` (`domain/limits/window.ts`) in Lua, with
 * the same steps in the same order. The field `m` of its hash holds the newest slot `k`, the sum
 * `s`, the debt `d`, the open overrun `o` and `p` of this and of the previous generation `g`, the
 * limit `l`, the counted and the kept slots `c` and `K`, whether anything was added after
 * admissions `A`, and the epoch `e`. The other fields are amounts by slot and, prefixed with `a`,
 * the added part. Only changed fields are written.
 *
 * Overrun that its worker does not hold again within a generation is forgotten at the end of the
 * next one, because nobody settles the calls of a worker that has crashed.
 */
const generationSlots = 120;
/** How often a worker holds the overrun of its calls again: well within a generation. */
export const holdAgainMs = (generationSlots * 1_000) / 2;

export const windowScript = `
local W = {}
W.__index = W

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local slot = math.floor(now / 1000)

function W:begin(counted)
  self.isNew, self.m = true, ''
  self.amounts, self.added, self.changed, self.gone = {}, {}, {}, {}
  self.k, self.s, self.d, self.o, self.p, self.g, self.l, self.c, self.K, self.A, self.e =
    slot, 0, 0, 0, 0, 0, math.huge, counted, counted, false, ''
end

function W:read(m)
  self.isNew, self.m = false, m
  self.amounts, self.added, self.changed, self.gone = {}, {}, {}, {}
  local k, s, d, o, p, g, l, c, K, A, e = string.match(m,
    '^(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):([%dinf]+):(%d+):(%d+):(%d):(.*)$')
  self.k, self.s, self.d, self.o = tonumber(k), tonumber(s), tonumber(d), tonumber(o)
  self.p, self.g = tonumber(p), tonumber(g)
  self.l, self.c, self.K, self.A, self.e = tonumber(l), tonumber(c), tonumber(K), A == '1', e
end

-- The slot never goes back: a window that has seen a later one moves all of the script to it.
local function open(key, counted)
  local found = redis.call('HMGET', key, 'm', slot, 'L')
  local w = setmetatable({ key = key, asked = counted }, W)
  if found[1] then w:read(found[1]) else w:begin(counted) end
  w:readLeases(found[3])
  w.wasAt, w.owed = w.k, w:owes()
  if w.k <= slot then w.amounts[slot] = tonumber(found[2] or 0) end
  if w.k > slot then slot = w.k end
  return w
end

-- Of another epoch, the server has forgotten a part.
function W:belongTo(epoch)
  if self.isNew or self.e == '' or self.e == epoch then return end
  redis.call('DEL', self.key)
  self:begin(self.asked)
  self:readLeases()
  self.wasAt, self.owed, self.isLoaded = self.k, false, false
end

local function generationOf(at)
  return math.floor(at / ${generationSlots})
end

function W:owes()
  return self.d > 0 or self.o + self.p > 0
end

-- Reads the amounts of slots that are not known yet: a few of them, or all of the window.
function W:load(from, to)
  if self.isNew or self.isLoaded then return end
  local slots = {}
  for at = from, to do
    if not self.amounts[at] then slots[#slots + 1] = at end
    if #slots > 4 then return self:loadAll() end
  end
  if #slots == 0 then return end
  for i, amount in ipairs(redis.call('HMGET', self.key, unpack(slots))) do
    self.amounts[slots[i]] = tonumber(amount or 0)
  end
end

function W:loadAll()
  self.isLoaded = true
  local fields = redis.call('HGETALL', self.key)
  for i = 1, #fields, 2 do
    local at = tonumber(fields[i])
    if at and not self.amounts[at] then self.amounts[at] = tonumber(fields[i + 1]) end
  end
end

function W:at(at)
  if not self.amounts[at] then self:load(at, at) end
  return self.amounts[at] or 0
end

function W:addedAt(at)
  if not self.A then return 0 end
  if not self.added[at] then
    self.added[at] = tonumber(redis.call('HGET', self.key, 'a' .. at) or 0)
  end
  return self.added[at]
end

function W:put(at, difference)
  self.amounts[at] = self:at(at) + difference
  self.changed[at] = true
end

function W:putAdded(at, difference)
  self.added[at] = self:addedAt(at) + difference
  self.changed['a' .. at] = self.added[at]
  self.A = true
end

function W:counts(at)
  return at <= self.k and at > self.k - self.c
end

function W:enter(to)
  if to <= self.k then return end
  local last = math.min(to - self.c, self.k)
  if to - self.k >= self.c then
    self.s = 0
  else
    self:load(self.k - self.c + 1, last)
    for at = self.k - self.c + 1, last do self.s = self.s - (self.amounts[at] or 0) end
  end
  for at = self.k - self.K + 1, math.min(to - self.K, self.k) do
    if self.amounts[at] ~= 0 then self.gone[#self.gone + 1] = at end
    if self.A then self.gone[#self.gone + 1] = 'a' .. at end
    self.amounts[at], self.added[at], self.changed[at], self.changed['a' .. at] = 0, 0, nil, nil
  end
  self.k = to
end

function W:pay()
  if self.d == 0 then return end
  local paid = math.min(self.d, self.l - self.s)
  if paid <= 0 then return end
  self.d = self.d - paid
  self.isPaid = true
  self:charge(paid)
  self:putAdded(self.k, paid)
end

function W:advance()
  while self.d > 0 and self.k < slot do
    self:enter(self.k + 1)
    self:pay()
  end
  self:enter(slot)
  local generation = generationOf(slot)
  if generation > self.g then
    self.o, self.p, self.g = 0, generation == self.g + 1 and self.o or 0, generation
  end
end

function W:overrun()
  return self.o + self.p
end

function W:holdTo(limit)
  self.l = limit
  self:pay()
end

function W:count(counted)
  if counted == self.c then return end
  if counted > self.K then self.K = counted end
  self.c = counted
  self.isRecounted = true
  self:load(self.k - counted + 1, self.k)
  self.s = 0
  for at = self.k - counted + 1, self.k do self.s = self.s + (self.amounts[at] or 0) end
  self:pay()
end

-- Applies the period and the limit of a scope.
function W:bring(counted, limit)
  self:advance()
  if counted ~= self.c then
    self.l = 0
    self:count(counted)
  end
  self:holdTo(limit)
end

function W:charge(amount)
  if amount == 0 then return end
  self:put(self.k, amount)
  self.s = self.s + amount
end

function W:change(at, difference)
  if at > self.k or at < self.k - self.K + 1 then return false end
  self:put(at, difference)
  if self:counts(at) then self.s = self.s + difference end
  return true
end

-- Adds what a call may use beyond its charge; negative: what it could use, held since a slot.
function W:openOverrun(amount, since)
  local age = self.g - generationOf(since)
  if age <= 0 then self.o = math.max(0, self.o + amount) end
  if age == 1 then self.p = math.max(0, self.p + amount) end
end

function W:chargeMore(amount)
  self.d = self.d + amount
  self:pay()
end

function W:adjust(at, difference)
  if not self:counts(at) then return self:change(at, difference) end
  local fitting = math.min(difference, math.max(0, self.l - self.s))
  self:change(at, fitting)
  self.d = self.d + difference - fitting
  self:pay()
  return true
end

function W:refundAdded(amount, since)
  local left = amount
  if self.A then
    for at = math.max(since, self.k - self.K + 1), self.k do
      local refund = math.min(left, self:addedAt(at))
      if refund > 0 then
        left = left - refund
        self:putAdded(at, -refund)
        self:change(at, -refund)
      end
      if left == 0 then break end
    end
  end
  self.d = self.d - math.min(left, self.d)
  self:pay()
end

function W:newestUsed()
  local at = self.k
  while at > self.k - self.c + 1 and self:at(at) == 0 do at = at - 1 end
  return at
end

-- What the gateway needs to explain a refusal: debt, overrun, then slots with their amounts.
function W:told()
  local told = { self.d, self:overrun() }
  self:load(self.k - self.c + 1, self.k)
  for at = self.k - self.c + 1, self.k do
    local amount = self.amounts[at] or 0
    if amount ~= 0 then
      told[#told + 1] = at
      told[#told + 1] = amount
    end
  end
  return told
end

-- Lua passes no more than some 8,000 values at once.
local function callInParts(command, key, values)
  for first = 1, #values, 1000 do
    redis.call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
end

-- A window that owes something is kept until its calls have ended; others as long as they count.
function W:save(lifetime, epoch)
  self.e = epoch or self.e
  local m = string.format('%.0f:%.0f:%.0f:%.0f:%.0f:%.0f:%.0f:%d:%d:%d:%s', self.k, self.s, self.d,
    self.o, self.p, self.g, self.l, self.c, self.K, self.A and 1 or 0, self.e)
  local fields = {}
  if m ~= self.m then fields[1], fields[2] = 'm', m end
  for at, amount in pairs(self.changed) do
    fields[#fields + 1] = at
    fields[#fields + 1] = amount == true and self.amounts[at] or amount
  end
  callInParts('HDEL', self.key, self.gone)
  callInParts('HSET', self.key, fields)
  local owes = self:owes()
  if self.isNew or self.k ~= self.wasAt or owes ~= self.owed then
    redis.call('PEXPIRE', self.key, owes and lifetime or (self.K + 5) * 1000)
  end
end
${leasesOfWindow}`;
