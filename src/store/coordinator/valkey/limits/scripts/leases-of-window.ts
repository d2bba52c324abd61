/** How long a window waits for leases that have ended. */
const returnSlots = 10;

/**
 * The field `L` of a window's hash: the slot of its last lease, how many leases of that slot have
 * not been given back, and the last slot without leases, because they were in the way of a request.
 */
export const leasesOfWindow = `
function W:readLeases(found)
  self.lentAt, self.lent, self.pressed = 0, 0, 0
  if not found then return end
  local at, lent, pressed = string.match(found, '^(%d+):(%d+):(%d+)$')
  self.lentAt, self.lent, self.pressed = tonumber(at), tonumber(lent), tonumber(pressed)
end

function W:putLeases()
  self.changed.L = string.format('%.0f:%.0f:%.0f', self.lentAt, self.lent, self.pressed)
end

-- Counts a lease of this slot.
function W:lend()
  if self.lentAt ~= slot then self.lentAt, self.lent = slot, 0 end
  self.lent = self.lent + 1
  self:putLeases()
end

function W:takeBack(lentAt)
  if self.lentAt ~= lentAt or self.lent == 0 then return end
  self.lent = self.lent - 1
  self:putLeases()
end

-- A lease that has ended may still be on its way back, unless its worker has crashed.
function W:isLent()
  return self.lent > 0 and self.lentAt >= slot - ${returnSlots}
end

-- The window gets no leases until the end of the next slot. True: it still got some.
function W:press()
  if self.pressed > slot then return false end
  self.pressed = slot + 1
  self:putLeases()
  return true
end
`;
