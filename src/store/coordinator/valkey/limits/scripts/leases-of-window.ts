import { pressedSlots } from "../../../../../domain/limits/lease-rules.ts";

/** How long a window waits for leases that have ended. */
const returnSlots = 10;

/**
 * The field `L` of a window's hash: the slot of its last lease, how many leases of that slot and of
 * the one before have not been given back, and the last slot without leases, because they were in
 * the way of a request.
 */
export const leasesOfWindow = `
function W:readLeases(found)
  self.lentAt, self.lent, self.before, self.pressed = 0, 0, 0, 0
  if not found then return end
  local at, lent, before, pressed = string.match(found, '^(%d+):(%d+):(%d+):(%d+)$')
  self.lentAt, self.lent = tonumber(at), tonumber(lent)
  self.before, self.pressed = tonumber(before), tonumber(pressed)
end

function W:putLeases()
  self.changed.L =
    string.format('%.0f:%.0f:%.0f:%.0f', self.lentAt, self.lent, self.before, self.pressed)
end

-- Counts a lease of this slot.
function W:lend()
  if self.lentAt ~= slot then
    self.before = self.lentAt == slot - 1 and self.lent or 0
    self.lentAt, self.lent = slot, 0
  end
  self.lent = self.lent + 1
  self:putLeases()
end

function W:takeBack(lentAt)
  if lentAt == self.lentAt then self.lent = math.max(0, self.lent - 1) end
  if lentAt == self.lentAt - 1 then self.before = math.max(0, self.before - 1) end
  self:putLeases()
end

-- A lease that has ended may still be on its way back, unless its worker has crashed.
function W:isLent()
  return self.lent + self.before > 0 and self.lentAt >= slot - ${returnSlots}
end

-- The window gets no leases until the end of the next slot. True: it still got some.
function W:press()
  if self.pressed > slot then return false end
  self.pressed = slot + ${pressedSlots - 1}
  self:putLeases()
  return true
end
`;
