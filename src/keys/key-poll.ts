/**
 * Interval between looks for changed keys, in case that their announcement was lost. A look into a
 * database in a file costs next to nothing.
 */
export function keyPollMs({ backend }: { readonly backend: "sqlite" | "postgres" }): number {
  return backend === "sqlite" ? 500 : 1_000;
}
