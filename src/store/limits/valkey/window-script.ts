/** How long what calls could still use beyond their charges is kept, unless their process tells it again. */
export const openLifeSlots = 120;

/**
 * The window of a scope as a script sees it: `UsageWindow` (`window.ts`) in Lua, with the same steps.
 * A window is one value: its newest slot, the counted and the kept slots, the limit, the debt, a
 * number that grows with each change, and two lists: amounts by the age of their slot, and what each
 * process says that its calls could still use beyond their charges. A value that is nothing of the
 * kind counts as lost: no decision uses it, and the next correction replaces it.
 */
export const windowScript = `
local W = {}
W.__index = W

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local micros = time[1] * 1000000 + time[2]
local slot = math.floor(now / 1000)
local broken = 0

local function begin(key, counted)
  return setmetatable({ key = key, isNew = true, k = slot, c = counted, K = counted, l = math.huge,
    d = 0, n = 0, s = 0, amounts = {}, open = {} }, W)
end

local function isCount(value)
  return type(value) == 'number' and value >= 0 and value <= 9007199254740991
    and value == math.floor(value)
end

local function bySlot(list, newest)
  if type(list) ~= 'table' then return nil end
  local amounts = {}
  for i = 1, #list, 2 do
    if not isCount(list[i]) or not isCount(list[i + 1]) then return nil end
    amounts[newest - list[i]] = list[i + 1]
  end
  return amounts
end

local function read(key, packed)
  local isPacked, t = pcall(cmsgpack.unpack, packed)
  if not isPacked or type(t) ~= 'table' then return nil end
  for i = 1, 6 do if i ~= 4 and not isCount(t[i]) then return nil end end
  if type(t[4]) ~= 'number' or not (t[4] >= 0) or type(t[8]) ~= 'table' then return nil end
  -- A later slot than now is one of a server whose clock is ahead, by no more than an hour.
  if t[1] > slot + 3600 or t[2] > t[3] or t[3] > 3600 then return nil end
  local amounts = bySlot(t[7], t[1])
  if not amounts then return nil end
  local open = {}
  for i = 1, #t[8], 3 do
    if not isCount(t[8][i + 1]) or not isCount(t[8][i + 2]) then return nil end
    open[tostring(t[8][i])] = { t[8][i + 1], t[8][i + 2] }
  end
  local w = setmetatable({ key = key, k = t[1], c = t[2], K = t[3], l = t[4], d = t[5], n = t[6],
    amounts = amounts, open = open }, W)
  w:sum()
  return w
end

-- The slot never goes back: a window that has seen a later one moves all of the script to it.
local function open(key, counted)
  local packed = redis.pcall('GET', key)
  local w = type(packed) == 'string' and read(key, packed)
  if packed and not w then broken = broken + 1 end
  w = w or begin(key, counted)
  if w.k > slot then slot = w.k end
  return w
end

function W:sum()
  self.s = 0
  for at, amount in pairs(self.amounts) do
    if self:counts(at) then self.s = self.s + amount end
  end
end

function W:at(at) return self.amounts[at] or 0 end

function W:counts(at) return at <= self.k and at > self.k - self.c end

function W:enter(to)
  if to <= self.k then return end
  for at = self.k - self.c + 1, math.min(to - self.c, self.k) do self.s = self.s - self:at(at) end
  self.k = to
end

function W:pay()
  local paid = math.min(self.d, self.l - self.s)
  if paid <= 0 then return end
  self.d = self.d - paid
  self.isChanged = true
  self:charge(paid)
end

function W:advance()
  while self.d > 0 and self.k < slot do
    self:enter(self.k + 1)
    self:pay()
  end
  self:enter(slot)
end

function W:holdTo(limit)
  if limit ~= self.l and self.d > 0 then self.isChanged = true end
  self.l = limit
  self:pay()
end

function W:count(counted)
  if counted == self.c then return end
  self.c, self.K, self.isChanged = counted, math.max(counted, self.K), true
  self:sum()
  self:pay()
end

-- Applies the period and the limit of a scope. While the period changes, no debt is paid.
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
  self.amounts[self.k] = self:at(self.k) + amount
  self.s = self.s + amount
end

-- Never below nothing: a slot that was lost has nothing to give back.
function W:change(at, difference)
  if at > self.k or at <= self.k - self.K then return end
  difference = math.max(difference, -self:at(at))
  self.amounts[at] = self:at(at) + difference
  if self:counts(at) then self.s = self.s + difference end
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
end

-- Takes back what was charged in a slot that still counts: from the debt, then from the slot.
function W:takeBack(at, amount)
  if not self:counts(at) then return end
  local ofDebt = math.min(amount, self.d)
  self.d = self.d - ofDebt
  self:change(at, ofDebt - amount)
end

-- Replaces what was charged for a call by what it used.
function W:settle(admitted, difference)
  if self:counts(admitted) or difference <= 0 then self:adjust(admitted, difference)
  else self:chargeMore(difference) end
end

-- What calls could still use beyond their charges, by what their processes say.
function W:overrun()
  local sum = 0
  for _, of in pairs(self.open) do
    if of[2] > slot - ${openLifeSlots} then sum = sum + of[1] end
  end
  return sum
end

function W:setOpen(process, amount)
  self.open[process] = amount > 0 and { amount, slot } or nil
end

function W:newestUsed()
  local at = self.k
  while at > self.k - self.c + 1 and self:at(at) == 0 do at = at - 1 end
  return at
end

local function told(w) return { w.s, w.d, w:newestUsed(), w.n } end

-- What explains a refusal: debt, overrun, number, then slots with their amounts.
local function explained(w)
  local all = { w.d, w:overrun(), w.n }
  for at = w.k - w.c + 1, w.k do
    if w:at(at) ~= 0 then all[#all + 1] = at; all[#all + 1] = w:at(at) end
  end
  return all
end

-- A window that owes something is kept until that is paid.
function W:save()
  self.n = math.max(self.n + 1, micros)
  local amounts, open = {}, {}
  for at, amount in pairs(self.amounts) do
    if at > self.k - self.K and amount > 0 then
      amounts[#amounts + 1] = self.k - at; amounts[#amounts + 1] = amount
    end
  end
  local seconds = self.K + 5
  for process, of in pairs(self.open) do
    if of[2] > slot - ${openLifeSlots} then
      open[#open + 1] = process; open[#open + 1] = of[1]; open[#open + 1] = of[2]
      seconds = math.max(seconds, ${openLifeSlots})
    end
  end
  seconds = math.min(86400, seconds + math.ceil(self.d / math.max(1, self.l)) * self.c)
  redis.call('SET', self.key, cmsgpack.pack({ self.k, self.c, self.K, self.l, self.d, self.n,
    amounts, open }), 'PX', seconds * 1000)
end
`;
