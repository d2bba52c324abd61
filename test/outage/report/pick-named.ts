/**
 * The items that match one of the filters, or all without filters. A filter is words separated by
 * commas or slashes, each of which must be a part of the name: `stall,stream`. Throws if a word is
 * no part of any name.
 */
export function pickNamed<Named extends { readonly name: string }>(
  all: readonly Named[],
  filters: readonly string[],
): readonly Named[] {
  const wanted = filters.map((filter) => filter.split(/[,/]/).filter((word) => word !== ""));
  const known = new Set(all.flatMap(({ name }) => name.split("/")));
  for (const word of wanted.flat()) {
    if (known.has(word)) continue;
    throw new Error(`no cell has '${word}' in its name; the parts are ${[...known].join(", ")}`);
  }
  if (wanted.length === 0) return all;
  return all.filter(({ name }) => {
    const parts = name.split("/");
    return wanted.some((words) => words.every((word) => parts.includes(word)));
  });
}
