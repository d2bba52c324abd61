/**
 * The window of a scope as a script sees it: `UsageWindow` (`domain/limits/window.ts`) in Lua, with
 * the same steps in the same order. A hash holds the newest slot `k`, the counted and the kept
 * slots `c` and `K`, their sum `s`, the debt `d`, the open overrun `o`, the limit `l`, the epoch
 * `e`, and by slot the amounts and, prefixed with `a`, the part that was added after admissions.
 * Only changed fields are written.
 */
export const windowScript = `
local W = {}
W.__index = W

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local slot = math.floor(now / 1000)

-- The slot never goes back: a window that has seen a later one moves all of the script to it.
local function open(key, counted)
  local f = redis.call('HMGET', key, 'k', 's', 'd', 'o', 'l', 'c', 'K', 'e', 'A', slot)
  local w = setmetatable({ key = key, amounts = {}, added = {}, changed = {}, gone = {} }, W)
  w.isNew = not f[1]
  w.k = tonumber(f[1] or slot)
  w.s = tonumber(f[2] or 0)
  w.d = tonumber(f[3] or 0)
  w.o = tonumber(f[4] or 0)
  w.l = tonumber(f[5] or 'inf')
  w.c = tonumber(f[6] or counted)
  w.K = tonumber(f[7] or counted)
  w.e = f[8] or ''
  w.A = f[9]
  if w.k <= slot then w.amounts[slot] = tonumber(f[10] or 0) end
  if w.k > slot then slot = w.k end
  return w
end

-- Reads the amounts of slots that are not known yet.
function W:load(from, to)
  local fields, slots = {}, {}
  for at = from, to do
    if not self.amounts[at] then
      slots[#slots + 1] = at
      fields[#fields + 1] = at
    end
    if #fields == 1000 or (at == to and #fields > 0) then
      local found = self.isNew and {} or redis.call('HMGET', self.key, unpack(fields))
      for i, each in ipairs(slots) do self.amounts[each] = tonumber(found[i] or 0) end
      fields, slots = {}, {}
    end
  end
end

function W:at(at)
  if not self.amounts[at] then self:load(at, at) end
  return self.amounts[at]
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
  self.A = '1'
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
    for at = self.k - self.c + 1, last do self.s = self.s - self.amounts[at] end
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
  for at = self.k - counted + 1, self.k do self.s = self.s + self.amounts[at] end
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

function W:openOverrun(amount)
  self.o = math.max(0, self.o + amount)
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
  local told = { self.d, self.o }
  self:load(self.k - self.c + 1, self.k)
  for at = self.k - self.c + 1, self.k do
    local amount = self.amounts[at]
    if amount ~= 0 then
      told[#told + 1] = at
      told[#told + 1] = amount
    end
  end
  return told
end

-- A window that owes something is kept until its calls have ended; others as long as they count.
function W:save(epoch, lifetime)
  if self.isNew then self.e = epoch end
  local fields = { 'k', self.k, 's', self.s, 'd', self.d, 'o', self.o, 'l', self.l, 'c', self.c }
  if self.isNew or self.isRecounted then
    fields[#fields + 1], fields[#fields + 2] = 'K', self.K
    fields[#fields + 1], fields[#fields + 2] = 'e', self.e
  end
  if self.A then fields[#fields + 1], fields[#fields + 2] = 'A', '1' end
  for at, amount in pairs(self.changed) do
    fields[#fields + 1] = at
    fields[#fields + 1] = amount == true and self.amounts[at] or amount
  end
  if #self.gone > 0 then redis.call('HDEL', self.key, unpack(self.gone)) end
  redis.call('HSET', self.key, unpack(fields))
  local owes = self.d > 0 or self.o > 0
  redis.call('PEXPIRE', self.key, owes and lifetime or (self.K + 5) * 1000)
end
`;
