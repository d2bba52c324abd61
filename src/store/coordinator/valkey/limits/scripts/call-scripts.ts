import { scriptOf } from "../../connection/valkey-connection.ts";
import { leasesChannel } from "./leases-channel.ts";
import { windowScript } from "./window-script.ts";

/** Longer than a window counts, and than a worker remembers what it admitted. */
export const epochLifeMs = 7_200_000;

/**
 * One script for each decision. The parameters of a scope are five: the number of its window among
 * the keys, its counted slots, its limit, the limit beyond which its use is a debt, and the most
 * overrun. Requests are the unit of a window whose key ends with `r`.
 *
 * All windows of an account have its epoch, which outlives them. The caller says which epoch it
 * knows. When that is gone, the server has lost what the caller has admitted. It also says since when
 * data are valid: what carries an earlier time is void, and so are the windows of other epochs.
 */
const scopesScript = `
local next = 1
local function take()
  next = next + 1
  return ARGV[next - 1]
end

local since = tonumber(take())
-- An epoch of the version before carries none.
local function validAt(epoch)
  return tonumber(string.match(epoch, '@(%d+)$') or 0)
end

local function isVoid(epoch)
  return validAt(epoch) < since
end

-- Records carry the time of their epoch, of which the caller may not have heard yet.
local stamp = since
local function stampFor(epoch)
  stamp = math.max(since, validAt(epoch))
end

local function openScopes(first)
  local windows, scopes = {}, {}
  for i = 1, tonumber(take()) do
    local key = KEYS[first + i - 1]
    windows[i] = open(key, tonumber(take()))
    windows[i].isRequests = string.sub(key, -1) == 'r'
  end
  for i = 1, tonumber(take()) do
    local w = windows[tonumber(take())]
    scopes[i] = { w = w, counted = tonumber(take()), limit = tonumber(take()) }
    scopes[i].held, scopes[i].most = tonumber(take()), tonumber(take())
  end
  return windows, scopes
end

-- The epoch of the account: nil when it is not the one that the caller knows.
local function findEpoch(key, known, new)
  local epoch = redis.call('GET', key)
  if epoch and not isVoid(epoch) then return (known == '' or known == epoch) and epoch or nil end
  if known ~= '' then return nil end
  redis.call('SET', key, new, 'PX', ${epochLifeMs})
  return new
end

local function belongTo(windows, epoch)
  for _, w in ipairs(windows) do w:belongTo(epoch) end
end

-- Looks for it only where the windows do not tell.
local function epochOf(windows, key, known, new)
  local isTold = known ~= '' and not isVoid(known)
  for _, w in ipairs(windows) do isTold = isTold and w.e == known end
  local epoch = isTold and known or findEpoch(key, known, new)
  if epoch and not isTold then belongTo(windows, epoch) end
  local first = windows[1]
  if epoch and (first.isNew or math.floor(first.k / 600) < math.floor(slot / 600)) then
    redis.call('PEXPIRE', key, ${epochLifeMs})
  end
  return epoch
end

local function bring(scopes)
  for _, scope in ipairs(scopes) do scope.w:bring(scope.counted, scope.held) end
end

-- Leases are in the way of a request: all workers hear that they have to give them back.
local function held(w, epoch, lifetime)
  local isNew = w:press()
  if isNew then
    w:save(lifetime, epoch)
    redis.call('PUBLISH', '${leasesChannel}', string.match(KEYS[1], '^sluice:{(.*)}:epoch$'))
  end
  return { 3, now, slot, isNew and 1 or 0 }
end

local function refused(windows, epoch, lifetime)
  local told = { 1, now, slot, epoch }
  for _, w in ipairs(windows) do
    -- A payment or another period stays; a refusal changes nothing else.
    if not w.isNew and (w.isPaid or w.isRecounted) then w:save(lifetime, epoch) end
    told[#told + 1] = w:told()
  end
  return told
end

local function admitted(windows, epoch)
  local told = { 0, now, slot, epoch }
  for _, w in ipairs(windows) do told[#told + 1] = { w.s, w.d, w:newestUsed() } end
  return told
end

local function amountOf(scope, requests, tokens)
  return scope.w.isRequests and requests or tokens
end

local function isOver(scope, requests, tokens)
  if scope.w.isRequests and requests == 0 then return false end
  return scope.w.s + scope.w.d + amountOf(scope, requests, tokens) > scope.limit
end

local function fitsEver(scope, requests, tokens)
  return amountOf(scope, requests, tokens) <= scope.limit
end
`;

/** What the server remembers of a call until it is settled. */
const recordScript = `
local function recordOf(admittedAt, reserved, charged, overrun, expires, heldSince)
  return string.format('%.0f:%.0f:%.0f:%.0f:%.0f:%.0f:%.0f', admittedAt, reserved, charged, overrun,
    expires, heldSince, stamp)
end

-- Nothing if there is none, or a void one.
local function readRecord(key)
  local record = redis.call('GET', key)
  if not record then return nil end
  local admittedAt, reserved, charged, overrun, expires, heldSince, writtenSince =
    string.match(record, '^(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+)$')
  stamp = tonumber(writtenSince or 0)
  if stamp < since then return nil end
  return tonumber(admittedAt), tonumber(reserved), tonumber(charged), tonumber(overrun),
    tonumber(expires), tonumber(heldSince)
end
`;

export const baseScript = windowScript + scopesScript + recordScript;

export const acquireScript = scriptOf(
  "acquire",
  `${baseScript}
local new, lifetime, known, mayWait = take(), tonumber(take()), take(), take() == '1'
local requests, tokens, overrun = tonumber(take()), tonumber(take()), tonumber(take())
local windows, scopes = openScopes(3)
local epoch = epochOf(windows, KEYS[1], known, new)
if not epoch then return { 2, now, slot } end
bring(scopes)
for _, scope in ipairs(scopes) do
  local most = scope.w.d + scope.w:overrun() + overrun
  if isOver(scope, requests, tokens)
    or overrun > 0 and not scope.w.isRequests and most > scope.most then
    if mayWait and scope.w:isLent() and fitsEver(scope, requests, tokens) then
      return held(scope.w, epoch, lifetime)
    end
    return refused(windows, epoch, lifetime)
  end
end
for _, w in ipairs(windows) do
  w:charge(w.isRequests and requests or tokens)
  if overrun > 0 and not w.isRequests then w:openOverrun(overrun, slot) end
  w:save(lifetime, epoch)
end
stampFor(epoch)
redis.call('SET', KEYS[2], recordOf(slot, tokens, tokens, overrun, now + lifetime, slot), 'PX',
  lifetime + 60000)
return admitted(windows, epoch)
`,
  { isDecision: true },
);

export const countScript = scriptOf(
  "count",
  `${baseScript}
local new, lifetime, known, mayWait = take(), tonumber(take()), take(), take() == '1'
local windows, scopes = openScopes(2)
local epoch = epochOf(windows, KEYS[1], known, new)
if not epoch then return { 2, now, slot } end
bring(scopes)
for _, scope in ipairs(scopes) do
  if isOver(scope, 1, 0) then
    if mayWait and scope.w:isLent() and fitsEver(scope, 1, 0) then
      return held(scope.w, epoch, lifetime)
    end
    return refused(windows, epoch, lifetime)
  end
end
for _, w in ipairs(windows) do
  if w.isRequests then w:charge(1) end
  w:save(lifetime, epoch)
end
return admitted(windows, epoch)
`,
  { isDecision: true },
);

export const uncountScript = scriptOf(
  "uncount",
  `${baseScript}
local lifetime, counted, known = tonumber(take()), tonumber(take()), take()
local windows, scopes = openScopes(1)
bring(scopes)
for _, w in ipairs(windows) do
  if w.isRequests and w.e == known and w:counts(counted) and w:at(counted) > 0 then
    w:change(counted, -1)
    w:save(lifetime)
  end
end
return 0
`,
);

/**
 * Each corrects the windows of tokens of one call, of which the first key is the record. A window
 * that has expired begins again, without an epoch.
 */
const callScript = `${baseScript}
local lifetime, used = tonumber(take()), tonumber(take())
local admittedAt, reserved, charged, overrun, expires, heldSince = readRecord(KEYS[1])
if not admittedAt then return 0 end

local function correct(by)
  local windows = {}
  for i = 2, #KEYS do
    local w = open(KEYS[i], tonumber(take()))
    w.held = tonumber(take())
    windows[#windows + 1] = w
  end
  for _, w in ipairs(windows) do
    w:advance()
    w:holdTo(w.held)
    w:openOverrun(-overrun, heldSince)
    by(w)
    w:save(lifetime)
  end
end
`;

/** With what is charged already, it only holds the overrun again. */
export const useScript = scriptOf(
  "use",
  `${callScript}
local more = math.max(0, used - charged)
if now >= expires or more == 0 and overrun == 0 then return 0 end
local left = math.max(0, overrun - more)
correct(function(w)
  w:openOverrun(left, slot)
  if more > 0 then w:chargeMore(more) end
end)
redis.call('SET', KEYS[1], recordOf(admittedAt, reserved, charged + more, left, expires, slot),
  'KEEPTTL')
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
correct(function(w)
  if not w:adjust(admittedAt, ofSlot) and difference > 0 then w:chargeMore(difference) end
  if difference < ofSlot then w:refundAdded(ofSlot - difference, admittedAt) end
end)
return 1
`,
);
