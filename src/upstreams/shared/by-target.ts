/**
 * What is made of each target's settings, which stand by alias, then by the provider's identifier. Made once;
 * without settings, a target is what its identifier says.
 */
export function byTarget<Settings, Made>(
  settings: ReadonlyMap<string, ReadonlyMap<string, Settings>>,
  make: (identifier: string, own?: Settings) => Made,
): (alias: string, identifier: string) => Made {
  const made = new Map(
    Array.from(settings, ([alias, targets]) => [
      alias,
      new Map(Array.from(targets, ([identifier, own]) => [identifier, make(identifier, own)])),
    ]),
  );
  return (alias, identifier) => made.get(alias)?.get(identifier) ?? make(identifier);
}
