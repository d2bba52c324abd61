import type { AdminSettings } from "../../../config/config.ts";
import type { Clock } from "../../../domain/clock.ts";
import { addressGroup } from "./address-group.ts";
import { RateWindow } from "./rate-window.ts";
import { SignInThrottle } from "./sign-in-throttle.ts";

/** One address may stand for an office: several people who mistype. */
const usersPerAddress = 5;

/** Limits tries to sign in: those with a password, and all others. */
export class SignInLimits {
  readonly passwords: SignInThrottle;
  readonly #addresses: RateWindow;

  constructor({ signInsPerMinute }: Pick<AdminSettings, "signInsPerMinute">, clock: Clock) {
    this.passwords = new SignInThrottle(signInsPerMinute, clock);
    this.#addresses = new RateWindow(signInsPerMinute * usersPerAddress, clock);
  }

  /** Of tries that need no password, whether they succeed or not. Throws 429. */
  countAddress(address: string): void {
    this.#addresses.count(addressGroup(address));
  }
}
