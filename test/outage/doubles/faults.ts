/** Faults of an upstream that last until it is repaired. */
export const faultMeanings = {
  "throttle-retry-after": "429, and Retry-After of five seconds",
  throttle: "429 without Retry-After",
  "error-500": "500",
  "unavailable-503": "503",
  refused: "connections are refused, open ones are closed",
  reset: "the connection is reset when a request has come",
  "black-hole": "nothing answers, not even to a new connection",
  "slow-headers": "requests are taken and never answered",
  stall: "answers stop in the middle",
  half: "every second request gets 503",
} as const;
export type Fault = keyof typeof faultMeanings;

export const faults = [
  "throttle-retry-after",
  "throttle",
  "error-500",
  "unavailable-503",
  "refused",
  "reset",
  "black-hole",
  "slow-headers",
  "stall",
  "half",
] as const satisfies readonly Fault[];

/** Marks in the text of a request that make only this request fail. */
export const requestMarks = {
  hang: "outage:hang",
  stall: "outage:stall",
  long: "outage:long",
} as const;
