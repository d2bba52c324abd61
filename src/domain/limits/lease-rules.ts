/** A lease is at most the rest of each limit, divided by this and by the number of workers. */
export const partsOfWorker = 4;

/** A lease of fewer requests saves nothing. */
export const fewestLeasedRequests = 2;

/** How long a limit gets no leases after they were recalled: until the end of the next slot. */
export const pressedSlots = 2;
