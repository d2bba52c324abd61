import advice from "./settings.json" with { type: "json" };

const known: ReadonlyMap<string, string> = new Map(Object.entries(advice));

/** Names with `*`, which stands for any text. */
const patterns = Object.entries(advice).flatMap(([name, what]) => {
  const parts = name.split("*").map((part) => part.replaceAll(/[^\w]/g, "\\$&"));
  return parts.length === 1 ? [] : [[new RegExp(`^${parts.join(".*")}$`), what] as const];
});

/** What to do instead of a setting that is not converted. */
export function adviceOn(setting: string): string {
  const [, what] = patterns.find(([pattern]) => pattern.test(setting)) ?? [];
  return known.get(setting) ?? what ?? "Sluice has nothing of this name";
}
