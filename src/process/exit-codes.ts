/** Exit codes: what a script can tell apart. */
export const exitCodes = { ok: 0, failed: 1, usage: 2 } as const;
