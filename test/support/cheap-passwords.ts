import { Passwords } from "../../src/control/sign-in/guard/passwords.ts";

/** Passwords whose hashes take next to no time, for tests that are not about their cost. */
export function cheapPasswords(): Passwords {
  return new Passwords({ memoryCost: 8, timeCost: 1 });
}
