import type { ValkeyScript } from "./client.ts";
import { trustAfterMs } from "./trust.ts";
import { parametersScript, sinceScript, timeScript } from "./since-script.ts";
import { reserveScript } from "./budget-scripts.ts";
import { windowScript } from "./window-script.ts";

/** Looks whether the server is the one that it was, each second. */
export const checkScript: ValkeyScript = {
  name: "check",
  text: `${timeScript}${sinceScript}
local since, knownRun, knownEvicted = sinceOf()
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''
local evicted = evictedKeys()
if not since or knownRun ~= '' and knownRun ~= run or evicted > (knownEvicted or evicted) then
  since = now
end
if since == now or knownRun ~= run or knownEvicted ~= evicted then beginAt(since, run, evicted) end
return { 0, now, now - since, evicted }
`,
};

/**
 * Decides about a request under all of its scopes, or none: { 0 admitted | 1 refused | 2 the server
 * has not all data | 3 a window was unreadable, now, slot, lease, windows }; of an admission that
 * limits in audit would have refused, the windows follow once more, as of a refusal. With an admission, the
 * process may lease what it will need until the slot ends: at most an equal part of what is left. With
 * budgets among the keys, their refusals are those of `reserve`, followed by windows. Without windows,
 * budgets alone decide, also while the server has not all data of windows.
 */
export const decideScript: ValkeyScript = {
  name: "decide",
  text: `${windowScript}${sinceScript}${parametersScript}${reserveScript}
local last = #KEYS - takeNumber()
local requests, tokens, overrun = takeNumber(), takeNumber(), takeNumber()
local parts = takeNumber()
local wished = { takeNumber(), takeNumber(), takeNumber() }
local windows = {}
for i = 2, last do
  local counted = takeNumber()
  local w = open(KEYS[i], counted)
  w.counted, w.isRequests, w.isAudited = counted, take() == 'r', takeNumber() == 1
  w.ownOpen = takeNumber()
  w.limit, w.held, w.most = takeNumber(), takeNumber(), takeNumber()
  windows[#windows + 1] = w
end
if broken > 0 then return { 3, now, slot, broken } end

local since, run, evicted = sinceOf()
local isNew = false
for _, w in ipairs(windows) do isNew = isNew or w.isNew end
-- A window that is not there may have been evicted.
if since and isNew and evicted and evictedKeys() > evicted then since = nil end
if not since then beginAt(now, run, nil) end
since = since or now
if #windows > 0 and now - since < ${trustAfterMs} then return { 2, now, slot, now - since } end

for _, w in ipairs(windows) do
  w:bring(w.counted, w.held)
  local own = w.open[process]
  w.others = w:overrun() - (own and own[2] > slot - 120 and own[1] or 0)
end

local function amountOf(w) return w.isRequests and requests or tokens end

local function isOver(w)
  if w.isRequests and requests == 0 then return false end
  if w.s + w.d + amountOf(w) > w.limit then return true end
  return overrun > 0 and not w.isRequests and w.d + w.others + w.ownOpen > w.most
end

local function explainAll(all, isRefused)
  for _, w in ipairs(windows) do
    if not w.isRequests then w:setOpen(process, math.max(0, w.ownOpen - overrun)) end
    -- A payment or another period stays; a refusal changes nothing else.
    if isRefused and not w.isNew and w.isChanged then w:save() end
    all[#all + 1] = explained(w)
  end
  return all
end

local wouldRefuse
for _, over in ipairs(windows) do
  if isOver(over) then
    if not over.isAudited then return explainAll({ 1, now, slot, {} }, true) end
    wouldRefuse = true
  end
end
local audited = wouldRefuse and explainAll({}, false) or {}
if last < #KEYS then
  local refused = reserve(last + 1, since)
  if refused then
    for _, w in ipairs(windows) do refused[#refused + 1] = told(w) end
    return refused
  end
end
for _, w in ipairs(windows) do w:charge(amountOf(w)) end

local lease = { 0, 0, 0 }
if parts > 0 then
  lease = wished
  for _, w in ipairs(windows) do
    local of = w.isRequests and 1 or 2
    local rest = w.limit - w.s - w.d
    -- Near the limit each call is decided here, so that nothing lies unused where it is needed.
    if rest < w.limit / 4 then lease = { 0, 0, 0 } end
    lease[of] = math.min(lease[of], math.max(0, math.floor(rest / parts)))
    if of == 2 then
      local left = w.most - w.d - w.others - w.ownOpen
      lease[3] = math.min(lease[3], math.max(0, math.floor(left / parts)))
    end
  end
end
local all = { 0, now, slot, lease }
for _, w in ipairs(windows) do
  w:charge(w.isRequests and lease[1] or lease[2])
  if not w.isRequests then w:setOpen(process, w.ownOpen + lease[3]) end
  w:save()
  all[#all + 1] = told(w)
end
for _, of in ipairs(audited) do all[#all + 1] = of end
return all
`,
};

/** Reads windows, each with its counted slots and its limit: { 0, now, slot, windows }. */
export const readScript: ValkeyScript = {
  name: "read",
  text: `${windowScript}
local windows = {}
for i = 1, #KEYS do windows[i] = open(KEYS[i], tonumber(ARGV[2 * i - 1])) end
local all = { 0, now, slot }
for i, w in ipairs(windows) do
  w:bring(tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i]))
  all[#all + 1] = told(w)
end
return all
`,
};

/**
 * Corrects windows: { 0, now, slot, age of the data, windows }. Each step is of a window, by its
 * number: 's' replaces a charge by what a call used, 'm' charges more for a running call, 't' takes a
 * part of that back, 'c' changes what a slot has counted, as far as that still counts.
 */
export const correctScript: ValkeyScript = {
  name: "correct",
  text: `${windowScript}${sinceScript}${parametersScript}
local windows = {}
for i = 2, #KEYS do
  local counted, limit = takeNumber(), takeNumber()
  local w = open(KEYS[i], counted)
  w:bring(counted, limit)
  w:setOpen(process, takeNumber())
  windows[#windows + 1] = w
end
while taken < #ARGV - 3 do
  local kind, w = take(), windows[takeNumber()]
  local at, amount = takeNumber(), takeNumber()
  if kind == 's' then w:settle(at, amount)
  elseif kind == 'm' then w:chargeMore(amount)
  elseif kind == 't' then w:takeBack(at, -amount)
  elseif w:counts(at) then w:change(at, amount)
  end
end
local since = sinceOf()
if not since then
  beginAt(now, '', nil)
  since = now
end
local all = { broken > 0 and 3 or 0, now, slot, now - since }
for _, w in ipairs(windows) do
  w:save()
  all[#all + 1] = told(w)
end
return all
`,
};
