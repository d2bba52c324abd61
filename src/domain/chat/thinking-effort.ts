/**
 * Tokens of thinking that an effort stands for, on models that take a budget. OpenAI publishes no
 * figures; these are what gateways commonly use.
 */
export const effortBudgets = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
} as const;

/** The effort, from `low` to `high`, whose budget is nearest: all models that reason have these. */
export function nearestEffort(budget: number): "low" | "medium" | "high" {
  const distance = (effort: keyof typeof effortBudgets): number =>
    Math.abs(effortBudgets[effort] - budget);
  if (distance("low") <= distance("medium")) return "low";
  return distance("medium") <= distance("high") ? "medium" : "high";
}
