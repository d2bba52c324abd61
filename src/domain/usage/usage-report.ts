/** Dimensions to group usage by. */
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

/** Step lengths, for which roll-ups exist. */
export const usageSteps = ["minute", "hour", "day"] as const;
export type UsageStep = (typeof usageSteps)[number];
