/** Carries the tags of accounts whose leases are in the way of a request. */
export const leasesChannel = "sluice:leases";
