import fc from "fast-check";

/** A kind of step of a random history, with how often it occurs. */
export function stepOf<Kind extends string, Fields extends object>(
  weight: number,
  kind: Kind,
  fields: { [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> },
) {
  const arbitrary = fc.record({ kind: fc.constant(kind), ...fields });
  return { weight, arbitrary: arbitrary as fc.Arbitrary<{ readonly kind: Kind } & Fields> };
}
