import type { AdminSettings } from "../../../config/config.ts";
import type { Clock } from "../../../domain/clock.ts";
import { addressGroup } from "./address-group.ts";
import { RateWindow } from "./rate-window.ts";
import { SignInThrottle } from "./sign-in-throttle.ts";

/** Several users may share an address, for example in an office. */
const usersPerAddress = 5;

/** Limits attempts to sign in, with and without a password. */
export class SignInLimits {
  readonly passwords: SignInThrottle;
  readonly #addresses: RateWindow;

  constructor({ signInsPerMinute }: Pick<AdminSettings, "signInsPerMinute">, clock: Clock) {
    this.passwords = new SignInThrottle(signInsPerMinute, clock);
    this.#addresses = new RateWindow(signInsPerMinute * usersPerAddress, clock);
  }

  /** Counts an attempt without a password, whether it succeeds or not. Throws 429. */
  countAddress(address: string): void {
    this.#addresses.count(addressGroup(address));
  }
}
