/** Whether a foundation model has reached its end of life by this time, wall clock in ms. */
export function hasEnded(id: string, now: number): boolean {
  return ends.some(([pattern, end]) => pattern.test(id) && now >= Date.parse(end));
}

/** Announced ends of life, the latest of all regions; read in November 2026. */
const ends: readonly (readonly [RegExp, string])[] = [
  [/^anthropic\.claude-opus-4-20250514-/, "2026-05-31"],
  [/^anthropic\.claude-3-5-haiku-/, "2026-06-19"],
  [/^meta\.llama3-1-405b-/, "2026-07-07"],
  [/^meta\.llama3-2-/, "2026-07-07"],
  [/^anthropic\.claude-3-(?:sonnet|5-sonnet|7-sonnet)-/, "2026-07-30"],
  [/^cohere\.command-r-/, "2026-08-19"],
  [/^anthropic\.claude-3-haiku-/, "2026-09-10"],
  [/^amazon\.nova-premier-/, "2026-09-14"],
  [/^anthropic\.claude-sonnet-4-20250514-/, "2026-10-14"],
  [/^anthropic\.claude-opus-4-1-/, "2027-01-08"],
  [/^anthropic\.claude-sonnet-4-5-/, "2027-04-08"],
];
