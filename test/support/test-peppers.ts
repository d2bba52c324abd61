import { Peppers } from "../../src/domain/keys/peppers.ts";
import { Secret } from "../../src/domain/keys/secret.ts";

/** The first makes digests, all verify; without names, one that all tests share. */
export function testPeppers(first = "test", ...older: readonly string[]): Peppers {
  return new Peppers(pepperOf(first), older.map(pepperOf));
}

export function pepperOf(name: string): Secret {
  return new Secret(`the pepper ${name} `.padEnd(40, "."));
}
