import { scriptOf } from "../connection/valkey-connection.ts";
import { windowScript } from "./window-script.ts";

/**
 * One script for each decision. The parameters of a scope are five: the number of its window among
 * the keys, its counted slots, its limit, the limit beyond which its use is a debt, and the most
 * overrun. Requests are the unit of a window whose key ends with `r`.
 */
const scopesScript = `
local next = 1
local function take()
  next = next + 1
  return ARGV[next - 1]
end

-- The windows of a list of scopes. Lost: the server has forgotten a window that the caller knows.
local function openScopes(first)
  local windows, scopes, lost = {}, {}, {}
  for i = 1, tonumber(take()) do
    local key, epoch = KEYS[first + i - 1], take()
    windows[i] = open(key, tonumber(take()))
    windows[i].isRequests = string.sub(key, -1) == 'r'
    if epoch ~= '' and windows[i].e ~= epoch then lost[#lost + 1] = i end
  end
  for i = 1, tonumber(take()) do
    local w = windows[tonumber(take())]
    scopes[i] = { w = w, counted = tonumber(take()), limit = tonumber(take()) }
    scopes[i].held, scopes[i].most = tonumber(take()), tonumber(take())
  end
  return windows, scopes, lost
end

local function bring(scopes)
  for _, scope in ipairs(scopes) do scope.w:bring(scope.counted, scope.held) end
end

local function refused(windows, epoch, lifetime)
  local told = { 1, now, slot }
  for _, w in ipairs(windows) do
    -- A payment or another period stays; a refusal changes nothing else.
    if not w.isNew and (w.isPaid or w.isRecounted) then w:save(epoch, lifetime) end
    told[#told + 1] = w:told()
  end
  return told
end

local function admitted(windows)
  local told = { 0, now, slot }
  for _, w in ipairs(windows) do told[#told + 1] = { w.e, w.s, w.d, w:newestUsed() } end
  return told
end

local function isOver(scope, requests, tokens)
  local amount = tokens
  if scope.w.isRequests then
    if requests == 0 then return false end
    amount = requests
  end
  return scope.w.s + scope.w.d + amount > scope.limit
end
`;

const base = windowScript + scopesScript;

export const acquireScript = scriptOf(
  "acquire",
  `${base}
local epoch, lifetime = take(), tonumber(take())
local requests, tokens, overrun = tonumber(take()), tonumber(take()), tonumber(take())
local windows, scopes, lost = openScopes(2)
if #lost > 0 then return { 2, now, slot, unpack(lost) } end
bring(scopes)
for _, scope in ipairs(scopes) do
  if isOver(scope, requests, tokens) then return refused(windows, epoch, lifetime) end
  if overrun > 0 and not scope.w.isRequests and scope.w.d + scope.w.o + overrun > scope.most then
    return refused(windows, epoch, lifetime)
  end
end
for _, w in ipairs(windows) do
  w:charge(w.isRequests and requests or tokens)
  if overrun > 0 and not w.isRequests then w:openOverrun(overrun) end
  w:save(epoch, lifetime)
end
local record = slot .. ':' .. tokens .. ':' .. tokens .. ':' .. overrun .. ':' .. (now + lifetime)
redis.call('SET', KEYS[1], record, 'PX', lifetime + 60000)
return admitted(windows)
`,
);

export const countScript = scriptOf(
  "count",
  `${base}
local epoch, lifetime = take(), tonumber(take())
local windows, scopes, lost = openScopes(1)
if #lost > 0 then return { 2, now, slot, unpack(lost) } end
bring(scopes)
for _, scope in ipairs(scopes) do
  if isOver(scope, 1, 0) then return refused(windows, epoch, lifetime) end
end
for _, w in ipairs(windows) do
  if w.isRequests then w:charge(1) end
  w:save(epoch, lifetime)
end
return admitted(windows)
`,
);

export const uncountScript = scriptOf(
  "uncount",
  `${base}
local epoch, lifetime, counted = take(), tonumber(take()), tonumber(take())
local windows, scopes = openScopes(1)
bring(scopes)
for _, w in ipairs(windows) do
  if w.isRequests and not w.isNew and w:counts(counted) and w:at(counted) > 0 then
    w:change(counted, -1)
    w:save(epoch, lifetime)
  end
end
return 0
`,
);

/** Each corrects the windows of tokens of one call, of which the first key is the record. */
const callScript = `${base}
local epoch, lifetime, used = take(), tonumber(take()), tonumber(take())
local record = redis.call('GET', KEYS[1])
if not record then return 0 end
local admittedAt, reserved, charged, overrun, expires =
  string.match(record, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
admittedAt, reserved, charged = tonumber(admittedAt), tonumber(reserved), tonumber(charged)
overrun, expires = tonumber(overrun), tonumber(expires)

local function correct(ended, by)
  for i = 2, #KEYS do
    local w = open(KEYS[i], tonumber(take()))
    local held = tonumber(take())
    w:advance()
    w:holdTo(held)
    w:openOverrun(-ended)
    by(w)
    w:save(epoch, lifetime)
  end
end
`;

export const useScript = scriptOf(
  "use",
  `${callScript}
local more = used - charged
if now >= expires or more <= 0 then return 0 end
local ended = math.min(more, overrun)
record = admittedAt .. ':' .. reserved .. ':' .. used .. ':' .. (overrun - ended) .. ':' .. expires
redis.call('SET', KEYS[1], record, 'KEEPTTL')
correct(ended, function(w) w:chargeMore(more) end)
return 1
`,
);

/** A negative number of tokens keeps the charge. */
export const settleScript = scriptOf(
  "settle",
  `${callScript}
redis.call('DEL', KEYS[1])
if now >= expires or used < 0 then used = charged end
local difference = used - charged
if difference == 0 and overrun == 0 then return 1 end
local ofSlot = math.max(difference, -reserved)
correct(overrun, function(w)
  if not w:adjust(admittedAt, ofSlot) and difference > 0 then w:chargeMore(difference) end
  if difference < ofSlot then w:refundAdded(ofSlot - difference, admittedAt) end
end)
return 1
`,
);

/**
 * Adds what a worker has admitted by itself, once: the first key remembers that. Ages are in slots.
 */
export const includeScript = scriptOf(
  "include",
  `${base}
local epoch, lifetime, count = take(), tonumber(take()), tonumber(take())
local windows, told, lost = {}, { 0 }, { 2 }
for i = 1, count do
  windows[i] = open(KEYS[i + 1], tonumber(take()))
  local epoch = take()
  if epoch ~= '' and windows[i].e ~= epoch then lost[#lost + 1] = i end
end
if #lost > 1 then return lost end
local isNew = redis.call('SET', KEYS[1], '1', 'PX', 600000, 'NX')
for _, w in ipairs(windows) do
  w:advance()
  local limit, debt = tonumber(take()), tonumber(take())
  for _ = 1, tonumber(take()) do
    local age, amount = tonumber(take()), tonumber(take())
    if isNew then w:change(math.min(slot - age, w.k), amount) end
  end
  if isNew and debt > 0 then
    if w.l == math.huge then w.l = limit end
    w:chargeMore(debt)
  end
end
for i = count + 2, #KEYS do
  local age, reserved, charged, overrun = take(), take(), take(), tonumber(take())
  local remaining, ofWindows = tonumber(take()), tonumber(take())
  local record = (slot - age) .. ':' .. reserved .. ':' .. charged .. ':' .. overrun
  if isNew then
    redis.call('SET', KEYS[i], record .. ':' .. (now + remaining), 'PX', remaining + 60000, 'NX')
  end
  for _ = 1, ofWindows do
    local w = windows[tonumber(take())]
    if isNew then w:openOverrun(overrun) end
  end
end
for _, w in ipairs(windows) do
  if isNew or not w.isNew then w:save(epoch, lifetime) end
  told[#told + 1] = w.e
end
return told
`,
);

export const limitScripts = [
  acquireScript,
  countScript,
  uncountScript,
  useScript,
  settleScript,
  includeScript,
];
