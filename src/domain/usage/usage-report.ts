/** What usage can be told apart by. */
export const usageDimensions = [
  "environment",
  "account",
  "application",
  "key",
  "model",
  "target",
  "status",
  "class",
] as const;
export type UsageDimension = (typeof usageDimensions)[number];

/** Length of a step: what roll-ups exist for. */
export const usageSteps = ["minute", "hour", "day"] as const;
export type UsageStep = (typeof usageSteps)[number];
