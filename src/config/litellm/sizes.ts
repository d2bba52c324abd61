import known from "./sizes.json" with { type: "json" };

export interface Sizes {
  readonly window: number;
  /** Undefined: not known, or as long as the window. */
  readonly output: number | undefined;
}

const rows = Object.entries(known.models).map(
  ([pattern, [window = 0, output]]) => [new RegExp(pattern), { window, output }] as const,
);

/** What is known of a model by its provider's name of it. The first pattern that fits counts. */
export function sizesOf(model: string): Sizes | undefined {
  const name = model.toLowerCase().split("/").at(-1) ?? "";
  const bare = name.replace(/^(?:[a-z]{2,7}\.)?(?:[a-z0-9]+\.)(?=[a-z]+)/, "");
  return rows.find(([pattern]) => pattern.test(bare) || pattern.test(name))?.[1];
}
