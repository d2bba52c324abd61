import { scriptOf } from "../../connection/valkey-connection.ts";
import { baseScript, epochLifeMs } from "./call-scripts.ts";

/**
 * Adds what a worker has admitted by itself, once: the first key remembers that. Ages are in slots.
 */
export const includeScript = scriptOf(
  "include",
  `${baseScript}
local new, lifetime, known, count = take(), tonumber(take()), take(), tonumber(take())
local epoch = findEpoch(KEYS[2], known, new)
if not epoch then return { 2 } end
redis.call('PEXPIRE', KEYS[2], ${epochLifeMs})
local windows = {}
for i = 1, count do windows[i] = open(KEYS[i + 2], tonumber(take())) end
local told = redis.call('GET', KEYS[1])
if told and tonumber(told) >= since then return { 0, epoch } end
stampFor(epoch)
redis.call('SET', KEYS[1], string.format('%.0f', stamp), 'PX', 600000)
belongTo(windows, epoch)
for _, w in ipairs(windows) do
  w:advance()
  local limit, debt = tonumber(take()), tonumber(take())
  for _ = 1, tonumber(take()) do
    local age, amount = tonumber(take()), tonumber(take())
    w:change(math.min(slot - age, w.k), amount)
  end
  if debt > 0 then
    if w.l == math.huge then w.l = limit end
    w:chargeMore(debt)
  end
end
for i = count + 3, #KEYS do
  local age, reserved, charged, overrun = take(), take(), take(), tonumber(take())
  local remaining, ofWindows = tonumber(take()), tonumber(take())
  local record = recordOf(slot - age, reserved, charged, overrun, now + remaining, slot)
  -- One that is there already is of a window that the server has lost.
  redis.call('SET', KEYS[i], record, 'PX', remaining + 60000)
  for _ = 1, ofWindows do windows[tonumber(take())]:openOverrun(overrun, slot) end
end
for _, w in ipairs(windows) do w:save(lifetime, epoch) end
return { 0, epoch }
`,
);
