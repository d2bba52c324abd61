import type { AdminSettings } from "../../../config/config.ts";
import type { Clock } from "../../../domain/clock.ts";
import { addressGroup } from "./address-group.ts";
import { RateWindow } from "./rate-window.ts";
import { SignInThrottle } from "./sign-in-throttle.ts";

/** An address may be shared, as by an office. */
const usersPerAddress = 5;

/** Limits tries to sign in, with a password and without. */
export class SignInLimits {
  readonly passwords: SignInThrottle;
  readonly #addresses: RateWindow;

  constructor({ signInsPerMinute }: Pick<AdminSettings, "signInsPerMinute">, clock: Clock) {
    this.passwords = new SignInThrottle(signInsPerMinute, clock);
    this.#addresses = new RateWindow(signInsPerMinute * usersPerAddress, clock);
  }

  /** Counts a try without a password, successful or not. Throws 429. */
  countAddress(address: string): void {
    this.#addresses.count(addressGroup(address));
  }
}
