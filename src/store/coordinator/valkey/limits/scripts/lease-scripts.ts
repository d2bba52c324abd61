import { fewestLeasedRequests } from "../../../../../domain/limits/lease-rules.ts";
import { scriptOf } from "../../connection/valkey-connection.ts";
import { baseScript } from "./call-scripts.ts";

/**
 * Charges what a worker may admit by itself in this slot: at most one of `parts` of what each scope
 * has left. The second key remembers the lease until it is given back.
 */
export const leaseScript = scriptOf(
  "lease",
  `${baseScript}
local new, lifetime, known, parts = take(), tonumber(take()), take(), tonumber(take())
local requests, tokens, overrun = tonumber(take()), tonumber(take()), tonumber(take())
local windows, scopes = openScopes(3)
local epoch = epochOf(windows, KEYS[1], known, new)
if not epoch then return { 2 } end
bring(scopes)
local function partOf(left)
  return math.floor(math.max(0, left) / parts)
end
for _, scope in ipairs(scopes) do
  local w = scope.w
  if w.pressed >= slot then return { 1 } end
  local left = partOf(scope.limit - w.s - w.d)
  if w.isRequests then
    requests = math.min(requests, left)
  else
    tokens = math.min(tokens, left)
    overrun = math.min(overrun, partOf(scope.most - w.d - w:overrun()))
  end
end
if requests < ${fewestLeasedRequests} then return { 1 } end
for _, w in ipairs(windows) do
  w:charge(w.isRequests and requests or tokens)
  if overrun > 0 and not w.isRequests then w:openOverrun(overrun, slot) end
  w:lend()
  w:save(lifetime, epoch)
end
stampFor(epoch)
local given = string.format('%.0f:%.0f:%.0f:%.0f:%.0f', slot, requests, tokens, overrun, stamp)
redis.call('SET', KEYS[2], given, 'PX', lifetime + 60000)
return { 0, requests, tokens, overrun, admitted(windows, epoch) }
`,
);

/**
 * Reverts what no call used of a lease, once, and records the calls that still run: after the first
 * key, the lease, come the windows and then the records. A negative rest is all of the lease.
 */
export const giveBackScript = scriptOf(
  "give-back",
  `${baseScript}
local given = redis.call('GET', KEYS[1])
if not given then return 0 end
redis.call('DEL', KEYS[1])
local lentAt, allRequests, allTokens, allOverrun, writtenSince =
  string.match(given, '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
lentAt = tonumber(lentAt)
stamp = tonumber(writtenSince or 0)
if stamp < since then return 0 end
local function rest(all)
  local left = tonumber(take())
  return left < 0 and tonumber(all) or left
end
local lifetime = tonumber(take())
local requests, tokens, overrun = rest(allRequests), rest(allTokens), rest(allOverrun)
local count = tonumber(take())
local windows = {}
for i = 1, count do
  windows[i] = open(KEYS[i + 1], tonumber(take()))
  windows[i].held = tonumber(take())
end
for i, w in ipairs(windows) do
  local isRequests = string.sub(KEYS[i + 1], -1) == 'r'
  local unused = isRequests and requests or tokens
  w:advance()
  w:holdTo(w.held)
  if unused > 0 then w:adjust(lentAt, -unused) end
  if not isRequests then w:openOverrun(-overrun, lentAt) end
  w:takeBack(lentAt)
  w:save(lifetime)
end
for i = count + 2, #KEYS do
  local charged, left = take(), take()
  redis.call('SET', KEYS[i],
    recordOf(lentAt, charged, charged, left, now + lifetime, lentAt), 'PX', lifetime + 60000)
end
return 1
`,
);
